package config

import (
	"bytes"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/agext/levenshtein"
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/gohcl"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// fault makes an error at a place, which may be nil.
func fault(place *hcl.Range, summary, format string, args ...any) *hcl.Diagnostic {
	return &hcl.Diagnostic{Severity: hcl.DiagError, Summary: summary, Detail: fmt.Sprintf(format, args...), Subject: place}
}

// warning makes a warning at a place, which may be nil.
func warning(place *hcl.Range, summary, format string, args ...any) *hcl.Diagnostic {
	diag := fault(place, summary, format, args...)
	diag.Severity = hcl.DiagWarning
	return diag
}

// sentence gives an error's text a capital letter and a full stop.
func sentence(err error) string {
	text := err.Error()
	text = strings.ToUpper(text[:1]) + text[1:]
	if strings.HasSuffix(text, "?") || strings.HasSuffix(text, ".") {
		return text
	}
	return text + "."
}

// suggestion returns the name that was probably meant by one that is not
// among names, or "": the nearest by Levenshtein distance if at most two
// letters differ and not all of them, else one that continues what is written
// or of which it is a longer form.
func suggestion(written string, names []string) string {
	best, bestDistance := "", 3
	for _, name := range names {
		if distance := levenshtein.Distance(strings.ToLower(written), strings.ToLower(name), nil); distance < min(bestDistance, len(name)) {
			best, bestDistance = name, distance
		}
	}
	if best == "" && len(written) >= 3 {
		for _, name := range names {
			if strings.HasPrefix(name, written) || strings.HasPrefix(written, name) {
				return name
			}
		}
	}
	return best
}

// notOneOf says that a name is not among those known, and which may be meant.
func notOneOf(written, what string, names []string) string {
	text := fmt.Sprintf("%q is not %s.", written, what)
	if better := suggestion(written, names); better != "" {
		text += fmt.Sprintf(" Did you mean %q?", better)
	}
	return text + " There are " + quoteAll(names, "and") + "."
}

// quoteAll lists names: "a", "b" and "c".
func quoteAll(names []string, conjunction string) string {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = fmt.Sprintf("%q", name)
	}
	if len(quoted) < 2 {
		return strings.Join(quoted, "")
	}
	last := len(quoted) - 1
	return strings.Join(quoted[:last], ", ") + " " + conjunction + " " + quoted[last]
}

// unknownNames reports the arguments and blocks of a body that the schema, a
// pointer to a struct for gohcl, does not have. gohcl would report them too,
// but suggests the first similar name rather than the nearest.
func unknownNames(body hcl.Body, schema any) hcl.Diagnostics {
	var diags hcl.Diagnostics
	implied, _ := gohcl.ImpliedBodySchema(schema)
	var arguments, blocks []string
	for _, attribute := range implied.Attributes {
		arguments = append(arguments, attribute.Name)
	}
	for _, block := range implied.Blocks {
		blocks = append(blocks, block.Type)
	}
	unknown := func(place hcl.Range, what, other, name string, same, others []string) {
		text := fmt.Sprintf("There is no %s %q here.", what, name)
		if slices.Contains(others, name) {
			text = fmt.Sprintf("%q is %s, not %s.", name, article(other), article(what))
		} else if better := suggestion(name, append(slices.Clone(same), others...)); better != "" {
			text += fmt.Sprintf(" Did you mean %q?", better)
		} else if homes := blocksWith(name); len(homes) > 0 {
			text += " It belongs in a " + quoteAll(homes, "or") + " block."
		} else if len(same) > 0 {
			text += " There are " + quoteAll(same, "and") + "."
		}
		diags = append(diags, fault(&place, "Unknown "+what, "%s", text))
	}

	written := body.(*hclsyntax.Body)
	for name, attribute := range written.Attributes {
		if !slices.Contains(arguments, name) {
			unknown(attribute.NameRange, "argument", "block", name, arguments, blocks)
		}
	}
	for _, block := range written.Blocks {
		if !slices.Contains(blocks, block.Type) {
			unknown(block.TypeRange, "block", "argument", block.Type, blocks, arguments)
			continue
		}
		diags = append(diags, unknownNames(block.Body, blockSchema(schema, block.Type))...)
	}
	return diags
}

// blocksWith lists the blocks that have an argument of this name.
func blocksWith(argument string) []string {
	var found []string
	root, _ := gohcl.ImpliedBodySchema(&fileSchema{})
	for _, block := range root.Blocks {
		implied, _ := gohcl.ImpliedBodySchema(blockSchema(&fileSchema{}, block.Type))
		if slices.ContainsFunc(implied.Attributes, func(a hcl.AttributeSchema) bool { return a.Name == argument }) {
			found = append(found, block.Type)
		}
	}
	return found
}

func article(noun string) string {
	if strings.ContainsRune("aeiou", rune(noun[0])) {
		return "an " + noun
	}
	return "a " + noun
}

// blockSchema returns a pointer to an empty struct of the kind that the field
// for a block leads to.
func blockSchema(schema any, block string) any {
	fields := reflect.TypeOf(schema).Elem()
	for i := range fields.NumField() {
		if field := fields.Field(i); field.Tag.Get("hcl") == block+",block" {
			kind := field.Type
			if kind.Kind() == reflect.Slice {
				kind = kind.Elem()
			}
			return reflect.New(kind.Elem()).Interface()
		}
	}
	panic("config: no schema for block " + block)
}

// within narrows the place of a quoted string to a part of its text, where the
// file has the text as it is, without escapes.
func within(expr hcl.Expression, text string, offset, length int) hcl.Range {
	place := expr.Range()
	const quotes = 2
	isPlain := place.End.Byte-place.Start.Byte == len(text)+quotes && place.Start.Line == place.End.Line
	for _, c := range []byte(text) {
		isPlain = isPlain && c < utf8.RuneSelf // one column a byte
	}
	if !isPlain {
		return place
	}
	length = max(length, 1) // where something is missing: the next character
	place.Start.Byte += 1 + offset
	place.Start.Column += 1 + offset
	place.End.Byte = place.Start.Byte + length
	place.End.Column = place.Start.Column + length
	return place
}

// bareAmount is a number that runs into its unit.
var bareAmount = regexp.MustCompile(`[0-9.]+(?:[A-Za-z]+|%)`)

// explainMissingQuotes replaces the parser's message about an amount that
// stands without quotes, such as 20GiB or 80%.
func explainMissingQuotes(diags hcl.Diagnostics, src []byte) {
	for _, diag := range diags {
		if diag.Subject == nil || diag.Subject.Start.Byte > len(src) {
			continue
		}
		fault := diag.Subject.Start
		lineStart := bytes.LastIndexByte(src[:fault.Byte], '\n') + 1
		line, _, _ := bytes.Cut(src[lineStart:], []byte("\n"))
		for _, match := range bareAmount.FindAllIndex(line, -1) {
			start, end := lineStart+match[0], lineStart+match[1]
			if start > fault.Byte || end < fault.Byte || bytes.ContainsRune(line[:match[0]], '"') {
				continue
			}
			diag.Summary = "Missing quotes"
			diag.Detail = fmt.Sprintf("A value with a unit is written in quotes. Did you mean %q?", src[start:end])
			diag.Subject.Start = hcl.Pos{Line: fault.Line, Column: fault.Column - (fault.Byte - start), Byte: start}
			diag.Subject.End = hcl.Pos{Line: fault.Line, Column: diag.Subject.Start.Column + end - start, Byte: end}
			diag.Context = nil
			break
		}
	}
}

// sortDiagnostics puts diagnostics in the order of the file, those without a
// place last.
func sortDiagnostics(diags hcl.Diagnostics) {
	place := func(diag *hcl.Diagnostic) int {
		if diag.Subject == nil {
			return int(^uint(0) >> 1)
		}
		return diag.Subject.Start.Byte
	}
	slices.SortStableFunc(diags, func(a, b *hcl.Diagnostic) int { return place(a) - place(b) })
}

// terminalColumns is the width that messages are wrapped at.
const terminalColumns = 78

// WriteDiagnostics writes diagnostics for a person, as tools with HCL
// configurations do: severity and summary, file and line, the line of source
// with carets under what the message is about, and the details. files are the
// sources, see [Config.Files]; color adds terminal escapes.
func WriteDiagnostics(w io.Writer, diags hcl.Diagnostics, files map[string]*hcl.File, color bool) error {
	for _, diag := range diags {
		var text bytes.Buffer
		if err := hcl.NewDiagnosticTextWriter(&text, files, terminalColumns, color).WriteDiagnostic(diag); err != nil {
			return err
		}
		if _, err := w.Write(addCarets(text.Bytes(), diag.Subject, files)); err != nil {
			return fmt.Errorf("writing diagnostics: %w", err)
		}
	}
	return nil
}

// addCarets inserts a line of carets below the line of source that a message
// is about. (hcl's writer marks the place by underlining, which only some
// terminals show and no log does.)
func addCarets(text []byte, subject *hcl.Range, files map[string]*hcl.File) []byte {
	if subject == nil || files[subject.Filename] == nil {
		return text
	}
	src := files[subject.Filename].Bytes
	if subject.Start.Byte > len(src) {
		return text
	}
	number := fmt.Sprintf("%4d: ", subject.Start.Line)
	at := bytes.Index(text, []byte("\n"+number))
	if at < 0 {
		return text
	}
	lineEnd := at + 1 + bytes.IndexByte(text[at+1:], '\n') + 1

	indent := src[bytes.LastIndexByte(src[:subject.Start.Byte], '\n')+1 : subject.Start.Byte]
	marked, _, _ := bytes.Cut(src[subject.Start.Byte:min(max(subject.End.Byte, subject.Start.Byte), len(src))], []byte("\n"))
	carets := strings.Repeat(" ", len(number)) +
		strings.Map(func(r rune) rune {
			if r == '\t' {
				return r
			}
			return ' '
		}, string(indent)) +
		strings.Repeat("^", max(1, utf8.RuneCount(marked))) + "\n"
	return slices.Insert(text, lineEnd, []byte(carets)...)
}
