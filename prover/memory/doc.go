// Package memory has large blocks outside Go's heap: the points of proving keys and the working buffers of proofs. They
// are gone when they are freed, not when the garbage collector next comes by, and the collector leaves no room as large
// as they are for garbage. What the process holds is then what the budget counts, beside a small heap whose limit the
// package keeps at what the blocks leave of the budget.
//
// The package knows nothing of who needs memory and who waits for it: package interlock admits by bytes.
package memory
