package cuda

import (
	"bytes"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"
)

// fakeSensor answers with what a test sets, after its delay.
type fakeSensor struct {
	value atomic.Int64
	delay atomic.Int64 // nanoseconds
	err   error
	calls atomic.Int64
}

func (s *fakeSensor) celsius(pciAddress string) (int, error) {
	s.calls.Add(1)
	time.Sleep(time.Duration(s.delay.Load()))
	if pciAddress != "0000:41:00.0" {
		return 0, errors.New("another card")
	}
	return int(s.value.Load()), s.err
}

func newThermometer(s sensor) *thermometer {
	return &thermometer{sensor: s, pciAddress: "0000:41:00.0", log: hclog.NewNullLogger()}
}

// However often it is asked for, the temperature is read once a second.
func TestTemperatureIsReadOnceASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &fakeSensor{}
		s.value.Store(71)
		m := newThermometer(s)
		defer m.close()
		for range 100 {
			celsius, known := m.celsius()
			require.True(t, known)
			require.Equal(t, 71, celsius)
		}
		require.EqualValues(t, 1, s.calls.Load())
		s.value.Store(80)
		time.Sleep(temperatureInterval)
		celsius, _ := m.celsius()
		require.Equal(t, 80, celsius)
		require.EqualValues(t, 2, s.calls.Load())
	})
}

// A driver that does not answer holds nobody up: what was known is told for a
// while, then nothing, until it answers again.
func TestTemperatureWithABusyDriver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &fakeSensor{}
		s.value.Store(71)
		m := newThermometer(s)
		_, known := m.celsius()
		require.True(t, known)

		s.delay.Store(int64(time.Minute))
		time.Sleep(temperatureInterval)
		for range 5 {
			start := time.Now()
			celsius, known := m.celsius()
			require.True(t, known)
			require.Equal(t, 71, celsius)
			require.LessOrEqual(t, time.Since(start), temperaturePatience)
			time.Sleep(time.Second)
		}
		require.EqualValues(t, 2, s.calls.Load(), "one call waits at a time")
		time.Sleep(temperatureAge)
		_, known = m.celsius()
		require.False(t, known)

		start := time.Now()
		m.close()
		require.LessOrEqual(t, time.Since(start), temperatureInterval)

		time.Sleep(time.Minute)
		s.delay.Store(0)
		celsius, known := m.celsius()
		require.True(t, known)
		require.Equal(t, 71, celsius)
	})
}

// Without NVML nothing is known, and that is said once, to who looks closely.
func TestTemperatureUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		s := &fakeSensor{err: errors.New("there is no NVML")}
		m := newThermometer(s)
		m.log = hclog.New(&hclog.LoggerOptions{Level: hclog.Debug, Output: &log})
		for range 3 {
			_, known := m.celsius()
			require.False(t, known)
			time.Sleep(temperatureInterval)
		}
		m.close()
		require.EqualValues(t, 3, s.calls.Load())
		require.Equal(t, 1, strings.Count(log.String(), "there is no NVML"))
		require.Contains(t, log.String(), "[DEBUG]")
	})
	_, known := new(Device).TemperatureCelsius()
	require.False(t, known, "a device without a thermometer")
}

// Asking the real sensor for a card that there is not fails, with NVML and
// without.
func TestTemperatureOfNoCard(t *testing.T) {
	_, err := nvmlSensor{}.celsius("ffff:ff:1f.7")
	require.Error(t, err)
	t.Log(err)
}
