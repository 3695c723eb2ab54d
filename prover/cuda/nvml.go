package cuda

import (
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
)

// sensor is where temperatures of cards come from: NVML, NVIDIA's library for
// watching cards, or a simulated one. Cards are named by their PCI addresses.
// A call may take as long as the driver does.
type sensor interface {
	celsius(pciAddress string) (int, error)
}

const (
	// temperatureInterval is how often a sensor is asked at most.
	temperatureInterval = time.Second
	// temperaturePatience is how long who wants to know waits for a sensor. It
	// answers within a millisecond unless the driver is busy or in trouble.
	temperaturePatience = 20 * time.Millisecond
	// temperatureAge is the age from which a temperature is no longer told.
	temperatureAge = 10 * time.Second
)

// thermometer asks a sensor for one card, on a goroutine of its own: a driver in
// trouble holds up that goroutine and nobody else. A nil thermometer knows
// nothing.
type thermometer struct {
	sensor     sensor
	pciAddress string
	log        hclog.Logger

	mu         sync.Mutex
	reading    chan struct{} // closed when the goroutine ends; nil without one
	asked      time.Time     // when it was started last
	value      int           // degrees Celsius
	read       time.Time     // when that was; zero: never
	complained bool
}

// celsius is the card's temperature, unless it is not known now.
func (t *thermometer) celsius() (int, bool) {
	if t == nil {
		return 0, false
	}
	if started := t.ask(); started != nil {
		select {
		case <-started:
		case <-time.After(temperaturePatience):
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.read.IsZero() || time.Since(t.read) > temperatureAge {
		return 0, false
	}
	return t.value, true
}

// ask starts the goroutine if there is none and the last one is long enough ago,
// and then returns what is closed at its end.
func (t *thermometer) ask() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.reading != nil || time.Since(t.asked) < temperatureInterval {
		return nil
	}
	done := make(chan struct{})
	t.reading, t.asked = done, time.Now()
	go func() {
		value, err := t.sensor.celsius(t.pciAddress)
		t.mu.Lock()
		defer t.mu.Unlock()
		if err == nil {
			t.value, t.read = value, time.Now()
		} else if !t.complained {
			t.complained = true
			t.log.Debug("the temperature of a card is not known", "pci", t.pciAddress, "error", err)
		}
		t.reading = nil
		close(done)
	}()
	return done
}

// close waits for the goroutine, but no longer than it may take when all is well:
// a call of the driver cannot be interrupted.
func (t *thermometer) close() {
	if t == nil {
		return
	}
	t.mu.Lock()
	done := t.reading
	t.mu.Unlock()
	if done == nil {
		return
	}
	select {
	case <-done:
	case <-time.After(temperatureInterval):
	}
}

// TemperatureCelsius is the temperature of the card's processor as it was at most
// some seconds ago. It is not known where NVML is not installed or the driver
// does not answer. It takes 20 ms at most.
func (d *Device) TemperatureCelsius() (celsius int, known bool) { return d.thermometer.celsius() }

// TemperatureCelsius is the temperature of the card's processor now, if it is
// known. It waits for the driver.
func (i Info) TemperatureCelsius() (celsius int, known bool) {
	celsius, err := nvmlSensor{}.celsius(i.PCIAddress)
	return celsius, err == nil
}
