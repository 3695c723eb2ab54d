package interlock

import (
	"fmt"
	"runtime/debug"
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
