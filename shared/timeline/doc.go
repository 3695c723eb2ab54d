// Package timeline records what every worker does and when, and says from it how busy each GPU was and why it was
// idle.
//
// A [Recorder] is a ring buffer of fixed-size events that costs well under a microsecond an event, so it is always on.
// What it holds is taken out as a [Recording], which goes to text lines ([Recording.WriteText], read back by [Parse]),
// to a Chrome trace that Perfetto opens ([Recording.WriteChromeTrace]), to a table of efficiencies and gaps
// ([Analyze], [Report.WriteText]) or to a picture for a terminal ([Recording.WriteWaterfall]).
//
// The package knows nothing of proofs, devices or processes: requests and GPUs are names to it, partitions and workers
// numbers.
package timeline
