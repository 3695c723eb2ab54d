// Package journal keeps accepted requests and their answers on disk, so that a host that is killed goes on where it was.
//
//	DIR/lock            held by the host that uses the directory
//	DIR/journal.db      bbolt: one record for each request, with its answer once there is one
//	DIR/requests/N      the whole of request N, until it is answered
//
// What a method has returned for is on disk. A record has its own checksum, and so has the file of a request, which
// says everything about the request: if the database is damaged, it is set aside under another name and what is
// unanswered is found again from the files.
//
// The package does not know how requests are proven, or how long answers are of use.
package journal
