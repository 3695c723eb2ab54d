package bincode

import (
	"errors"
	"testing"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	"github.com/stretchr/testify/require"
)

func TestReader(t *testing.T) {
	data := []byte{7, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 9}
	data = append(data, make([]byte, 31)...)
	r := NewReader(data)
	require.Equal(t, uint64(7), r.Uint64("a"))
	r.Variant("b", 2)
	elements := make([]fr.Element, 1)
	r.Elements("c", elements)
	require.NoError(t, r.Finish())
	require.Equal(t, fr.NewElement(9), elements[0])
}

// Each fault is reported with the innermost field's name, and only the first.
func TestReaderNamesTheField(t *testing.T) {
	modulus := fr.Modulus().FillBytes(make([]byte, 32))
	for i, j := 0, 31; i < j; i, j = i+1, j-1 {
		modulus[i], modulus[j] = modulus[j], modulus[i]
	}
	count := func(n byte) []byte { return []byte{n, 0, 0, 0, 0, 0, 0, 0} }
	cases := []struct {
		data []byte
		read func(r *Reader)
		want string
	}{
		{nil, func(r *Reader) { r.Uint64("x") }, "x: the data ends 0 bytes into a field of 8"},
		{make([]byte, 7), func(r *Reader) { r.Uint64("x"); r.Uint64("y") }, "x: the data ends 7 bytes into a field of 8"},
		{count(3), func(r *Reader) { r.Count("list", 2); r.In("outer") }, "outer.list: has 3 items, not 2"},
		{make([]byte, 4), func(r *Reader) { r.Variant("tag", 1) }, "tag: is variant 0, not 1"},
		{modulus, func(r *Reader) { r.Element("e") }, "e: is not below the field's modulus"},
		{append(count(1), modulus...), func(r *Reader) { r.Elements("l", make([]fr.Element, 1)); r.In("p[4]") },
			"p[4].l[0]: is not below the field's modulus"},
		{make([]byte, 9), func(r *Reader) { r.Uint64("x") }, "1 bytes follow the end of the data"},
	}
	for _, c := range cases {
		r := NewReader(c.data)
		c.read(r)
		err := r.Finish()
		require.EqualError(t, err, c.want)
		var field *FieldError
		require.True(t, errors.As(err, &field))
	}
}

func TestInKeepsOtherErrors(t *testing.T) {
	other := errors.New("other")
	require.Same(t, other, In("x", other))
	require.EqualError(t, In("vanilla[1]", &FieldError{"", "is empty"}), "vanilla[1]: is empty")
	require.EqualError(t, In("l", &FieldError{"[2]", "is bad"}), "l[2]: is bad")
}
