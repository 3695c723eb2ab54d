package pipeline

import (
	"errors"
	"fmt"

	"github.com/interlock-prover/interlock/shared"
)

// ErrClosed says that the pipeline takes no requests any more, or was closed before this one was answered.
var ErrClosed = errors.New("the prover is shutting down")

// DuplicateError says that a request of that id is under way.
type DuplicateError struct {
	RequestID string
}

func (e *DuplicateError) Error() string {
	return "a request of the id " + e.RequestID + " is already under way"
}

// StageError says at which stage a request failed, and of which.
type StageError struct {
	RequestID string
	Stage     shared.Stage
	Partition int    // -1 if the whole request was at that stage
	Device    string // empty if the stage is not on a device
	Err       error
}

func (e *StageError) Error() string {
	text := "request " + e.RequestID
	if e.Partition >= 0 {
		text += fmt.Sprintf(", partition %d", e.Partition)
	}
	text += ", " + string(e.Stage)
	if e.Device != "" {
		text += " on " + e.Device
	}
	return text + ": " + e.Err.Error()
}

func (e *StageError) Unwrap() error { return e.Err }

// DeviceFaultError is a device's way of saying that it failed, rather than what it was given: it is not used again before
// it passes a self-test.
type DeviceFaultError struct {
	Device string
	Err    error
}

func (e *DeviceFaultError) Error() string {
	return "device " + e.Device + " failed: " + e.Err.Error()
}

func (e *DeviceFaultError) Unwrap() error { return e.Err }

// DeviceLostError is a device's way of saying that it can do no more work.
type DeviceLostError struct {
	Device string
	Err    error
}

func (e *DeviceLostError) Error() string {
	return "device " + e.Device + " is lost: " + e.Err.Error()
}

func (e *DeviceLostError) Unwrap() error { return e.Err }

// NoDeviceError says that no device is left that could take a request.
type NoDeviceError struct {
	Err error // why the last of them cannot: a *DeviceLostError, an *interlock.TooLargeError or what Device.Memory returned
}

func (e *NoDeviceError) Error() string {
	return "no device is left that can prove this: " + e.Err.Error()
}

func (e *NoDeviceError) Unwrap() error { return e.Err }
