package timeline

import (
	"fmt"
	"time"
)

// Kind says what happened. The kinds of phases, things that last, come in pairs that end in Start and End.
type Kind uint8

// The order is: the pairs, start before end; then the moments. Numbers are part of the plugin's protocol: add new kinds
// without renumbering these.
const (
	RequestStart    Kind = 1  // a request was accepted
	RequestEnd      Kind = 2  // it was answered, or failed, or was cancelled
	ParamsStart     Kind = 3  // waiting for a circuit and its parameters begins
	ParamsEnd       Kind = 4  //
	MemoryWaitStart Kind = 5  // waiting for bytes of a memory budget begins
	MemoryWaitEnd   Kind = 6  //
	SynthStart      Kind = 7  // a witness is being computed
	SynthEnd        Kind = 8  //
	PrepareStart    Kind = 9  // buffers and transfers off the lock, before the device phase
	PrepareEnd      Kind = 10 //
	GPUStart        Kind = 11 // the interlock was taken: device phase
	GPUEnd          Kind = 12 // the interlock was given back
	KernelStart     Kind = 13 // the first kernel began, by the device's clock
	KernelEnd       Kind = 14 // the last kernel ended, by the device's clock
	FinishStart     Kind = 15 // the part after the device phase
	FinishEnd       Kind = 16 //
	BG2Start        Kind = 17 // the multi-exponentiation of B in G2 on the CPU
	BG2End          Kind = 18 //
	VerifyStart     Kind = 19 // the whole proof is being verified
	VerifyEnd       Kind = 20 //
	GPUQueue        Kind = 21 // a partition's witness is ready and waits for a worker
	GPUPickup       Kind = 22 // a worker took the partition
)

var kindNames = [...]string{
	RequestStart: "REQUEST_START", RequestEnd: "REQUEST_END",
	ParamsStart: "PARAMS_START", ParamsEnd: "PARAMS_END",
	MemoryWaitStart: "MEMORY_WAIT_START", MemoryWaitEnd: "MEMORY_WAIT_END",
	SynthStart: "SYNTH_START", SynthEnd: "SYNTH_END",
	PrepareStart: "PREPARE_START", PrepareEnd: "PREPARE_END",
	GPUStart: "GPU_START", GPUEnd: "GPU_END",
	KernelStart: "KERNEL_START", KernelEnd: "KERNEL_END",
	FinishStart: "FINISH_START", FinishEnd: "FINISH_END",
	BG2Start: "B_G2_START", BG2End: "B_G2_END",
	VerifyStart: "VERIFY_START", VerifyEnd: "VERIFY_END",
	GPUQueue: "GPU_QUEUE", GPUPickup: "GPU_PICKUP",
}

var kindByName = func() map[string]Kind {
	byName := make(map[string]Kind, len(kindNames))
	for k, name := range kindNames {
		if name != "" {
			byName[name] = Kind(k)
		}
	}
	return byName
}()

// String gives the name used in text exports, such as GPU_START.
func (k Kind) String() string {
	if int(k) < len(kindNames) && kindNames[k] != "" {
		return kindNames[k]
	}
	return fmt.Sprintf("KIND_%d", uint8(k))
}

// ParseKind is the inverse of [Kind.String].
func ParseKind(name string) (Kind, error) {
	if k, ok := kindByName[name]; ok {
		return k, nil
	}
	return 0, fmt.Errorf("unknown timeline event %q", name)
}

// isStart tells that k begins a phase; its end is k+1.
func (k Kind) isStart() bool { return k >= RequestStart && k <= VerifyEnd && k%2 == 1 }

// isEnd tells that k ends a phase; its start is k-1.
func (k Kind) isEnd() bool { return k >= RequestStart && k <= VerifyEnd && k%2 == 0 }

// None stands for an absent partition or worker.
const None = -1

// Event is something that happened at one moment. It is a small value without pointers of its own: copying one
// allocates nothing.
type Event struct {
	Time      time.Duration // since the recorder was started, by the monotonic clock
	Kind      Kind
	Partition int32  // of the request, or None
	Worker    int32  // of the GPU, or of the witness pool where GPU is empty; or None
	Request   string // the request's id; empty if the event belongs to none
	GPU       string // the device's name; empty for what happens on no device
}
