//go:build linux && amd64

package cuda

import (
	"fmt"
	"sync"

	"github.com/ebitengine/purego"
)

// nvmlName is the library, which comes with the driver. Its interface is in
// NVIDIA's NVML API Reference Guide.
const nvmlName = "libnvidia-ml.so.1"

// nvml is the loaded and initialised NVML. It stays so until the process ends.
type nvml struct {
	initialise  func() int32
	handleOf    func(pciAddress string, device *uintptr) int32
	temperature func(device uintptr, sensor int32, celsius *uint32) int32
	errorString func(result int32) string
}

// nvmlTemperatureGPU is NVML_TEMPERATURE_GPU, the sensor in the processor.
const nvmlTemperatureGPU = 0

// openNVML loads NVML, the first time that it is called.
var openNVML = sync.OnceValues(func() (*nvml, error) {
	so, err := purego.Dlopen(nvmlName, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return nil, err
	}
	n := &nvml{}
	for name, call := range map[string]any{
		"nvmlInit_v2": &n.initialise, "nvmlDeviceGetHandleByPciBusId_v2": &n.handleOf,
		"nvmlDeviceGetTemperature": &n.temperature, "nvmlErrorString": &n.errorString,
	} {
		if err := register(so, name, call); err != nil {
			return nil, err
		}
	}
	if err := n.explain(n.initialise(), "initialising %s", nvmlName); err != nil {
		return nil, err
	}
	return n, nil
})

// explain turns the result of a call into an error.
func (n *nvml) explain(result int32, doing string, args ...any) error {
	if result == 0 {
		return nil
	}
	return fmt.Errorf("%s: %s (NVML error %d)", fmt.Sprintf(doing, args...), n.errorString(result), result)
}

// nvmlSensor reads temperatures by NVML.
type nvmlSensor struct{}

func (nvmlSensor) celsius(pciAddress string) (int, error) {
	n, err := openNVML()
	if err != nil {
		return 0, err
	}
	device, value := new(uintptr), new(uint32)
	if err := n.explain(n.handleOf(pciAddress, device), "finding the card"); err != nil {
		return 0, err
	}
	if err := n.explain(n.temperature(*device, nvmlTemperatureGPU, value), "reading its temperature"); err != nil {
		return 0, err
	}
	return int(*value), nil
}
