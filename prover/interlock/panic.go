package interlock

import (
	"errors"
	"fmt"
	"runtime/debug"
	"time"
)

// PanicError is a panic that was stopped where it concerned one piece of work alone.
type PanicError struct {
	Value any    // what panic was called with
	Stack []byte // of the goroutine, as debug.Stack prints it
}

func (e *PanicError) Error() string {
	return fmt.Sprintf("panic: %v\n%s", e.Value, e.Stack)
}

// Unwrap gives the error that panic was called with, if it was one.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// Protect calls fn and turns a panic of it into a [*PanicError].
func Protect(fn func() error) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = &PanicError{Value: value, Stack: debug.Stack()}
		}
	}()
	return fn()
}

// ErrHangs says that a call did not return in the time that it has.
var ErrHangs = errors.New("the call has not returned in time")

// Within is Protect for a call that may hang, such as one into a driver: after limit it gives up with [ErrHangs]. Nobody
// waits for the call then, since nothing but the end of the process ends it.
func Within(limit time.Duration, fn func() error) error {
	returned := make(chan error, 1)
	go func() { returned <- Protect(fn) }()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case err := <-returned:
		return err
	case <-timer.C:
		return ErrHangs
	}
}
