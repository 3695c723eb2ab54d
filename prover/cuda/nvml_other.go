//go:build !(linux && amd64)

package cuda

import "errors"

// nvmlSensor reads no temperatures: NVML is loaded on Linux on amd64 alone, as
// the library with the kernels is.
type nvmlSensor struct{}

func (nvmlSensor) celsius(string) (int, error) { return 0, errors.ErrUnsupported }
