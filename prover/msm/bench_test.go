package msm

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/consensys/gnark-crypto/ecc"
	bls12381 "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fp"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
)

// Benchmarks run gnark-crypto's algorithm beside ours, by turns, so that other
// load on the machine meets both, and report the ratio of elapsed and of
// processor time.

func processorTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func compare(b *testing.B, ours, theirs func()) {
	var elapsed, processor [2]time.Duration
	for b.Loop() {
		for i, f := range []func(){ours, theirs} {
			start, used := time.Now(), processorTime()
			f()
			elapsed[i] += time.Since(start)
			processor[i] += processorTime() - used
		}
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(elapsed[0].Milliseconds())/float64(b.N), "ms")
	b.ReportMetric(float64(processor[0].Milliseconds())/float64(b.N), "cpu-ms")
	b.ReportMetric(elapsed[1].Seconds()/elapsed[0].Seconds(), "x-gnark")
	b.ReportMetric(processor[1].Seconds()/processor[0].Seconds(), "cpu-x-gnark")
}

const (
	maxLogG1 = 20
	maxLogG2 = 18
)

var benchScalars = sync.OnceValue(func() []fr.Element { return randomScalars(1 << maxLogG1) })

var benchG1 = sync.OnceValue(func() []bls12381.G1Affine {
	return must(curve1.fixed(context.Background(), &curve1.generator, randomScalars(1<<maxLogG1), 0))
})

var benchG2 = sync.OnceValue(func() []bls12381.G2Affine {
	return must(curve2.fixed(context.Background(), &curve2.generator, randomScalars(1<<maxLogG2), 0))
})

func BenchmarkG1(b *testing.B) {
	for _, log := range []int{12, 16, 17, 20} {
		b.Run(fmt.Sprintf("2^%d", log), func(b *testing.B) {
			bases, scalars := benchG1()[:1<<log], benchScalars()[:1<<log]
			compare(b,
				func() { must(G1(b.Context(), bases, scalars, 0)) },
				func() { must(new(bls12381.G1Jac).MultiExp(bases, scalars, gnarkConfig())) })
		})
	}
}

func BenchmarkG2(b *testing.B) {
	for _, log := range []int{12, 16, 18} {
		b.Run(fmt.Sprintf("2^%d", log), func(b *testing.B) {
			bases, scalars := benchG2()[:1<<log], benchScalars()[:1<<log]
			compare(b,
				func() { must(curve2.full(b.Context(), bases, scalars, 0)) },
				func() { must(new(bls12381.G2Jac).MultiExp(bases, scalars, gnarkConfig())) })
		})
	}
}

func BenchmarkG1Bits(b *testing.B) {
	bases := benchG1()
	selected := make([]uint64, words(len(bases)))
	scalars := make([]fr.Element, len(bases))
	for i, s := range benchScalars() {
		if s[0]&1 == 1 {
			selected[i/64] |= 1 << (i % 64)
			scalars[i].SetOne()
		}
	}
	compare(b,
		func() { must(curve1.bits(b.Context(), bases, selected, 0)) },
		func() { must(new(bls12381.G1Jac).MultiExp(bases, scalars, gnarkConfig())) })
}

func BenchmarkFixedBaseG1(b *testing.B) {
	scalars := benchScalars()
	compare(b,
		func() { must(curve1.fixed(b.Context(), &curve1.generator, scalars[:1<<17], 0)) },
		func() { bls12381.BatchScalarMultiplicationG1(&curve1.generator, scalars[:1<<17]) })
}

func BenchmarkFixedBaseG2(b *testing.B) {
	scalars := benchScalars()
	compare(b,
		func() { must(curve2.fixed(b.Context(), &curve2.generator, scalars[:1<<15], 0)) },
		func() { bls12381.BatchScalarMultiplicationG2(&curve2.generator, scalars[:1<<15]) })
}

// BenchmarkVectors compares sums with the vector adders to the same sums with
// the scalar ones.
func BenchmarkVectors(b *testing.B) {
	if !vectorsSupported {
		b.Skip("the processor has no vector adders")
	}
	defer func(before bool) { useVectors = before }(useVectors)
	for _, log := range []int{12, 16, 17, 20} {
		b.Run(fmt.Sprintf("G1/2^%d", log), func(b *testing.B) {
			compareVectors(b, &curve1, benchG1()[:1<<log])
		})
	}
	for _, log := range []int{12, 16} {
		b.Run(fmt.Sprintf("G2/2^%d", log), func(b *testing.B) {
			compareVectors(b, &curve2, benchG2()[:1<<log])
		})
	}
}

func compareVectors[A comparable, J any](b *testing.B, c *curve[A, J], bases []A) {
	var used [2]time.Duration
	for b.Loop() {
		for i, vectors := range []bool{true, false} {
			useVectors = vectors
			start := processorTime()
			must(c.full(b.Context(), bases, benchScalars()[:len(bases)], 0))
			used[i] += processorTime() - start
		}
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(used[0].Milliseconds())/float64(b.N), "cpu-ms")
	b.ReportMetric(used[1].Seconds()/used[0].Seconds(), "cpu-x-scalar")
}

// BenchmarkAdder is the limit of all sums: additions of a block in the cache,
// as processor time and as gnark-crypto's multiplications in the base field.
func BenchmarkAdder(b *testing.B) {
	b.Run("G1", func(b *testing.B) { benchAdder(b, &curve1) })
	b.Run("G2", func(b *testing.B) { benchAdder(b, &curve2) })
}

func benchAdder[A comparable, J any](b *testing.B, c *curve[A, J]) {
	points := c.randomBases(c.blockPoints)
	pairs := make([]pair, len(points)/2)
	for i := range pairs {
		pairs[i] = pair{uint32(i), uint32(i + len(pairs))}
	}
	adder := c.newAdder(len(pairs))
	factors := make([]fp.Element, len(pairs))
	for i := range factors {
		factors[i].MustSetRandom()
	}
	var adding, multiplying time.Duration
	for b.Loop() {
		start := processorTime()
		adder.addPairs(points, pairs)
		middle := processorTime()
		for i := range factors {
			factors[i].Mul(&factors[i], &factors[len(factors)-1-i])
		}
		adding += middle - start
		multiplying += processorTime() - middle
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(adding)/float64(b.N*len(pairs)), "ns/add")
	b.ReportMetric(float64(adding)/float64(multiplying), "muls/add")
}

func gnarkConfig() ecc.MultiExpConfig { return ecc.MultiExpConfig{NbTasks: runtime.GOMAXPROCS(0)} }

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
