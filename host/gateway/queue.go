package gateway

import "github.com/interlock-prover/interlock/shared"

// inProgress tells whether work on the proof of a request has begun. Decoding and waiting for parameters come before.
func inProgress(j shared.JobStatus) bool {
	switch j.Stage {
	case shared.StageQueued, shared.StageDecode, shared.StageParams:
		return j.PartitionsDone > 0
	}
	return true
}

// requestQueues counts requests by kind, for all kinds: a client that holds back its next request while so many are
// under way counts proofs, not the partitions that a prover makes of them. onTheirWay are those that the prover does
// not know yet.
func requestQueues(st shared.Status, onTheirWay map[shared.Kind]int) []shared.QueueStatus {
	var queues []shared.QueueStatus
	for _, kind := range shared.Kinds() {
		q := shared.QueueStatus{Kind: kind, Pending: onTheirWay[kind]}
		for _, j := range st.Jobs {
			switch {
			case j.Kind != kind:
			case inProgress(j):
				q.InProgress++
			default:
				q.Pending++
			}
		}
		queues = append(queues, q)
	}
	return queues
}

// queuePosition is how many requests go before a job that is pending: those of a higher priority and older ones of its
// own, in progress or not. It is 0 for a job that is in progress or done.
func queuePosition(st shared.Status, id string) uint32 {
	self := -1
	for i, j := range st.Jobs {
		if string(j.ID) == id && !inProgress(j) {
			self = i
		}
	}
	if self < 0 {
		return 0
	}
	before := uint32(0)
	for i, j := range st.Jobs {
		if j.Priority > st.Jobs[self].Priority || j.Priority == st.Jobs[self].Priority && i < self {
			before++
		}
	}
	return before
}
