package config

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/gohcl"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"github.com/interlock-prover/interlock/shared"
	"github.com/interlock-prover/interlock/shared/files"
)

// SearchPath is where [Find] looks for a configuration that nobody named.
var SearchPath = []string{"config.hcl", "/etc/interlock/config.hcl"}

// Find returns the file that is in force: the explicit one (the --config flag)
// if not empty, else the first of [SearchPath] that exists, else "" for the
// built-in defaults. [Load] takes any of these, and reports an explicit file
// that does not exist.
func Find(explicit string) string {
	if explicit != "" {
		return explicit
	}
	for _, path := range SearchPath {
		// A file that is there but cannot be read is reported, not passed over.
		// So is a link to one that is gone.
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			return path
		}
	}
	return ""
}

// DefaultParamsDir and ParamsDirVariable are where the original proofs library
// looks for parameters.
const (
	DefaultParamsDir  = "/var/tmp/filecoin-proof-parameters"
	ParamsDirVariable = "FIL_PROOFS_PARAMETER_CACHE"
)

// ParamsDir returns the folder of parameter files: the explicit one (the
// --params flag) if not empty, else the configuration's, else that of the
// environment variable [ParamsDirVariable], else [DefaultParamsDir]. cfg may be
// nil.
func ParamsDir(explicit string, cfg *Config) string {
	configured := ""
	if cfg != nil {
		configured = cfg.Parameters.Dir
	}
	return cmp.Or(explicit, configured, os.Getenv(ParamsDirVariable), DefaultParamsDir)
}

// maxFileBytes bounds a configuration file; config.hcl with every comment has a
// tenth of it.
const maxFileBytes = 64 << 10

// maxNesting bounds how many brackets and quotes a file may have open at once;
// a list in a block has three. The parser calls itself for each, with 10 KiB of
// stack, and Go ends a program whose stack reaches 1 GB.
const maxNesting = 32

// maxSyntaxErrors bounds how many of the parser's errors are reported: it has
// one for every byte of a file that is no text.
const maxSyntaxErrors = 20

// Load reads the file at path, or the built-in defaults if path is empty.
// Paths in the file are relative to the file's folder. All faults are in the
// diagnostics, in the order of the file, except those that only a machine can
// show: see [Config.CheckHardware].
//
// The configuration is never nil. If the diagnostics have errors it serves to
// explain them ([Config.Files], more checks) and must not be used otherwise:
// values at fault have their defaults.
func Load(path string) (*Config, hcl.Diagnostics) {
	if path == "" {
		return Default(), nil
	}
	src, err := readFile(path)
	if err != nil {
		cfg := Default()
		cfg.Path = path
		return cfg, hcl.Diagnostics{{
			Severity: hcl.DiagError,
			Summary:  "Configuration file cannot be read",
			Detail:   fmt.Sprintf("Reading %s: %s.", path, reason(err)),
		}}
	}
	return parse(src, path)
}

// Files are the sources that diagnostics of this configuration point into.
func (c *Config) Files() map[string]*hcl.File { return c.files }

func readFile(path string) ([]byte, error) {
	f, _, err := files.OpenRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	src, err := io.ReadAll(io.LimitReader(f, maxFileBytes+1))
	if err == nil && len(src) > maxFileBytes {
		err = fmt.Errorf("the file is larger than %s, which no configuration needs", ByteSize(maxFileBytes))
	}
	return src, err
}

// reason is an error's text without the operation and path, which the caller
// has said already.
func reason(err error) string {
	var pathError *fs.PathError
	if errors.As(err, &pathError) {
		return pathError.Err.Error()
	}
	return err.Error()
}

func parse(src []byte, path string) (*Config, hcl.Diagnostics) {
	cfg := Default()
	cfg.Path = path
	cfg.files = map[string]*hcl.File{path: {Bytes: src}}
	if bytes.IndexByte(src, 0) >= 0 {
		return cfg, hcl.Diagnostics{fault(nil, "Not a configuration file", "%s is no text but binary data.", path)}
	}
	if place := nestedTooDeeply(src, path); place != nil {
		return cfg, hcl.Diagnostics{fault(place, "Too many open brackets", "No configuration needs more than %d.", maxNesting)}
	}
	file, diags := hclsyntax.ParseConfig(src, path, hcl.InitialPos)
	cfg.files[path] = file
	if diags.HasErrors() {
		// What the parser made of a file that it did not understand would only
		// lead to more messages about the same mistake.
		diags = diags[:min(len(diags), maxSyntaxErrors)]
		explainMissingQuotes(diags, src)
		return cfg, diags
	}

	var written fileSchema
	diags = append(diags, unknownNames(file.Body, &written)...)
	diags = append(diags, gohcl.DecodeBody(file.Body, nil, &written)...)
	d := decoder{folder: filepath.Dir(path), places: make(map[any]hcl.Range)}
	d.config(&written, cfg)
	cfg.places = d.places
	diags = append(diags, d.diags...)
	diags = append(diags, cfg.check()...)
	sortDiagnostics(diags)
	return cfg, diags
}

// nestedTooDeeply returns the bracket that is one too many, or nil.
func nestedTooDeeply(src []byte, path string) *hcl.Range {
	// What the lexer complains of, the parser will too.
	tokens, _ := hclsyntax.LexConfig(src, path, hcl.InitialPos)
	open := 0
	for _, token := range tokens {
		switch token.Type {
		case hclsyntax.TokenOBrace, hclsyntax.TokenOBrack, hclsyntax.TokenOParen, hclsyntax.TokenOQuote,
			hclsyntax.TokenOHeredoc, hclsyntax.TokenTemplateInterp, hclsyntax.TokenTemplateControl:
			open++
		case hclsyntax.TokenCBrace, hclsyntax.TokenCBrack, hclsyntax.TokenCParen, hclsyntax.TokenCQuote,
			hclsyntax.TokenCHeredoc, hclsyntax.TokenTemplateSeqEnd:
			open = max(open-1, 0)
		}
		if open > maxNesting {
			return &token.Range
		}
	}
	return nil
}

// decoder turns attributes as written into values. Every method leaves the
// value alone if the attribute is missing, null or at fault, and otherwise
// remembers the place that the value came from.
type decoder struct {
	folder string // that paths are relative to
	places map[any]hcl.Range
	diags  hcl.Diagnostics
}

const (
	maxWorkers = 16
	maxThreads = maxCPU + 1
	maxAhead   = 1 << 10
	maxEvents  = 1 << 24
	maxCrashes = 100
)

func (d *decoder) config(written *fileSchema, cfg *Config) {
	cfg.GPUs = make([]GPU, len(written.GPUs))
	for i, s := range written.GPUs {
		gpu := &cfg.GPUs[i]
		gpu.Workers = defaultDeviceWorkers
		if id, err := ParseGPUID(s.Device); err != nil {
			d.fault(s.DeviceRange, "Invalid GPU name", "%v.", err)
		} else {
			gpu.ID, d.places[&gpu.ID] = id, s.DeviceRange
		}
		d.integer(s.Workers, 1, maxWorkers, &gpu.Workers)
		d.cpuSet(s.CPUs, &gpu.CPUs)
		d.size(s.MemoryLimit, &gpu.MemoryLimit)
	}
	if s := written.CUDA; s != nil {
		d.path(s.Library, &cfg.CUDA.Library)
		choice(d, s.Fallback, "fallback policy", []Fallback{FallbackNever, FallbackCriticalOnly, FallbackAlways}, &cfg.CUDA.Fallback)
	}
	if s := written.CPU; s != nil {
		d.boolean(s.Enabled, &cfg.CPU.Enabled)
		d.integer(s.Workers, 1, maxWorkers, &cfg.CPU.Workers)
		d.integer(s.Threads, 1, maxThreads, &cfg.CPU.Threads)
		d.cpuSet(s.CPUs, &cfg.CPU.CPUs)
	}
	if s := written.Memory; s != nil {
		d.memoryShare(s.Budget, &cfg.Memory.Budget)
		d.memoryShare(s.Margin, &cfg.Memory.Margin)
	}
	if s := written.Parameters; s != nil {
		d.path(s.Dir, &cfg.Parameters.Dir)
		d.preload(s.Preload, &cfg.Parameters.Preload)
		choice(d, s.Verify, "parameter check", []ParametersCheck{CheckStructure, CheckFull}, &cfg.Parameters.Verify)
		d.path(s.Manifest, &cfg.Parameters.Manifest)
	}
	if s := written.Priority; s != nil {
		d.priority(s.PoRep, &cfg.Priority.PoRep)
		d.priority(s.WinningPoSt, &cfg.Priority.WinningPoSt)
		d.priority(s.WindowPoSt, &cfg.Priority.WindowPoSt)
		d.priority(s.Update, &cfg.Priority.Update)
	}
	if s := written.Witness; s != nil {
		d.integer(s.Workers, 1, maxWorkers, &cfg.Witness.Workers)
		d.integer(s.Threads, 1, maxThreads, &cfg.Witness.Threads)
		d.integer(s.Ahead, 1, maxAhead, &cfg.Witness.Ahead)
	}
	if s := written.Timeline; s != nil {
		d.integer(s.Events, 0, maxEvents, &cfg.Timeline.Events)
		d.path(s.File, &cfg.Timeline.File)
	}
	if s := written.Log; s != nil {
		choice(d, s.Level, "log level", []LogLevel{LogTrace, LogDebug, LogInfo, LogWarn, LogError}, &cfg.Log.Level)
		choice(d, s.Format, "log format", []LogFormat{LogText, LogJSON}, &cfg.Log.Format)
		d.path(s.File, &cfg.Log.File)
	}
	if s := written.Plugin; s != nil {
		d.duration(s.StartTimeout, &cfg.Plugin.StartTimeout)
		d.duration(s.StopTimeout, &cfg.Plugin.StopTimeout)
		d.sha256(s.SHA256, &cfg.Plugin.SHA256)
		d.boolean(s.Detach, &cfg.Plugin.Detach)
		d.duration(s.DetachIdle, &cfg.Plugin.DetachIdle)
	}
	if s := written.Supervision; s != nil {
		d.duration(s.ProbeInterval, &cfg.Supervision.ProbeInterval)
		d.duration(s.ProbeTimeout, &cfg.Supervision.ProbeTimeout)
		d.duration(s.ProgressTimeout, &cfg.Supervision.ProgressTimeout)
		d.duration(s.Backoff, &cfg.Supervision.Backoff)
		d.duration(s.MaxBackoff, &cfg.Supervision.MaxBackoff)
		d.integer(s.CrashLimit, 1, maxCrashes, &cfg.Supervision.CrashLimit)
		d.duration(s.CrashWindow, &cfg.Supervision.CrashWindow)
		d.duration(s.CoolDown, &cfg.Supervision.CoolDown)
		d.integer(s.Attempts, 1, maxCrashes, &cfg.Supervision.Attempts)
	}
	if s := written.Deadline; s != nil {
		d.boolean(s.RefuseHopeless, &cfg.Deadline.RefuseHopeless)
	}
	if s := written.Journal; s != nil {
		d.path(s.Dir, &cfg.Journal.Dir)
		d.duration(s.Retention, &cfg.Journal.Retention)
	}
	cfg.fillIn(written)
}

func (d *decoder) fault(place hcl.Range, summary, format string, args ...any) {
	d.diags = append(d.diags, fault(&place, summary, format, args...))
}

// value returns the value of an expression, which must be of type want. What
// belongs there is described for messages: "a whole number".
func (d *decoder) value(expr hcl.Expression, want cty.Type, description string) (cty.Value, bool) {
	if name, ok := expr.(*hclsyntax.ScopeTraversalExpr); ok && len(name.Traversal) == 1 && want == cty.String {
		d.fault(expr.Range(), "Missing quotes", "Text is written in quotes. Did you mean %q?", name.Traversal.RootName())
		return cty.NilVal, false
	}
	if !isPlain(expr) {
		advice := ""
		switch expr.(type) {
		case *hclsyntax.TupleConsExpr, *hclsyntax.ObjectConsExpr, *hclsyntax.ScopeTraversalExpr:
		default:
			advice = " Calculations and variables are not possible."
		}
		d.fault(expr.Range(), "Unsuitable value", "What belongs here is %s.%s", description, advice)
		return cty.NilVal, false
	}
	value, diags := expr.Value(nil)
	d.diags = append(d.diags, diags...)
	if diags.HasErrors() || value.IsNull() {
		return cty.NilVal, false
	}
	var err error
	// Numbers are no text: one such as 1e999999999 would be a long one.
	isNumberAsText := value.Type() == cty.Number && want == cty.String
	if !isNumberAsText {
		value, err = convert.Convert(value, want)
	}
	if isNumberAsText || err != nil {
		d.fault(expr.Range(), "Unsuitable value", "What belongs here is %s.", description)
		return cty.NilVal, false
	}
	return value, true
}

// isPlain says whether an expression is a value and nothing to be calculated.
// A configuration needs no more, and a calculation can be short to write and
// without end to carry out.
func isPlain(expr hcl.Expression) bool {
	switch expr := expr.(type) {
	case *hclsyntax.LiteralValueExpr:
		return true
	case *hclsyntax.UnaryOpExpr:
		_, isLiteral := expr.Val.(*hclsyntax.LiteralValueExpr)
		return isLiteral
	case *hclsyntax.TemplateExpr:
		for _, part := range expr.Parts {
			if literal, ok := part.(*hclsyntax.LiteralValueExpr); !ok || literal.Val.Type() != cty.String {
				return false
			}
		}
		return true
	default:
		return false
	}
}

func (d *decoder) text(attr *hcl.Attribute, description string) (string, bool) {
	if attr == nil {
		return "", false
	}
	value, ok := d.value(attr.Expr, cty.String, description)
	if !ok {
		return "", false
	}
	return value.AsString(), true
}

func (d *decoder) set(dst any, attr *hcl.Attribute) { d.places[dst] = attr.Expr.Range() }

func (d *decoder) boolean(attr *hcl.Attribute, dst *bool) {
	if attr == nil {
		return
	}
	if value, ok := d.value(attr.Expr, cty.Bool, "true or false"); ok {
		*dst = value.True()
		d.set(dst, attr)
	}
}

func (d *decoder) integer(attr *hcl.Attribute, least, most int, dst *int) {
	if attr == nil {
		return
	}
	description := fmt.Sprintf("a whole number from %d to %d", least, most)
	value, ok := d.value(attr.Expr, cty.Number, description)
	if !ok {
		return
	}
	n, accuracy := value.AsBigFloat().Int64()
	if accuracy != big.Exact || n < int64(least) || n > int64(most) {
		d.fault(attr.Expr.Range(), "Number out of range", "%s must be %s.", attr.Name, description)
		return
	}
	*dst = int(n)
	d.set(dst, attr)
}

func (d *decoder) size(attr *hcl.Attribute, dst *ByteSize) {
	text, ok := d.text(attr, `a size such as "5GiB"`)
	if !ok {
		return
	}
	size, err := ParseByteSize(text)
	switch {
	case err != nil:
		d.fault(attr.Expr.Range(), "Invalid size", "%s", sentence(err))
	case size == 0:
		d.fault(attr.Expr.Range(), "Invalid size", "%s must be more than nothing.", attr.Name)
	default:
		*dst = size
		d.set(dst, attr)
	}
}

func (d *decoder) memoryShare(attr *hcl.Attribute, dst *MemoryShare) {
	text, ok := d.text(attr, `a size such as "20GiB" or a percentage such as "80%"`)
	if !ok {
		return
	}
	share, err := ParseMemoryShare(text)
	if err != nil {
		d.fault(attr.Expr.Range(), "Invalid amount of memory", "%s", sentence(err))
		return
	}
	*dst = share
	d.set(dst, attr)
}

func (d *decoder) duration(attr *hcl.Attribute, dst *time.Duration) {
	text, ok := d.text(attr, `a duration such as "30s" or "5m"`)
	if !ok {
		return
	}
	duration, err := time.ParseDuration(text)
	if err != nil || duration <= 0 {
		d.fault(attr.Expr.Range(), "Invalid duration",
			`%q is not a duration: write a number above zero followed by ms, s, m or h, such as "30s" or "1h30m".`, text)
		return
	}
	*dst = duration
	d.set(dst, attr)
}

// sha256 takes a digest in hex.
func (d *decoder) sha256(attr *hcl.Attribute, dst *string) {
	const digits = 2 * sha256.Size
	text, ok := d.text(attr, fmt.Sprintf("a SHA-256 of %d hex digits", digits))
	if !ok {
		return
	}
	if sum, err := hex.DecodeString(text); err != nil || len(sum) != sha256.Size {
		d.fault(attr.Expr.Range(), "Invalid digest", "A SHA-256 has %d hex digits, as `sha256sum` prints them.", digits)
		return
	}
	*dst = strings.ToLower(text)
	d.set(dst, attr)
}

func (d *decoder) cpuSet(attr *hcl.Attribute, dst *CPUSet) {
	text, ok := d.text(attr, `a CPU set such as "0-7,16"`)
	if !ok {
		return
	}
	set, err := ParseCPUSet(text)
	if item := (*CPUSetError)(nil); errors.As(err, &item) {
		d.fault(within(attr.Expr, text, item.Offset, len(item.Item)), "Invalid CPU set", "%s", sentence(err))
		return
	}
	*dst = set
	d.set(dst, attr)
}

// path takes a path relative to the file's folder.
func (d *decoder) path(attr *hcl.Attribute, dst *string) {
	text, ok := d.text(attr, `a path such as "/var/log/interlock"`)
	if !ok {
		return
	}
	if text == "" || strings.ContainsRune(text, 0) {
		d.fault(attr.Expr.Range(), "Invalid path", "%s must be a path, or left out.", attr.Name)
		return
	}
	if !filepath.IsAbs(text) {
		text = filepath.Join(d.folder, text)
	}
	*dst = text
	d.set(dst, attr)
}

func (d *decoder) priority(attr *hcl.Attribute, dst *shared.Priority) {
	choice(d, attr, "priority", []shared.Priority{
		shared.PriorityLow, shared.PriorityNormal, shared.PriorityHigh, shared.PriorityCritical,
	}, dst)
}

// choice takes the name of one of several values.
func choice[T any](d *decoder, attr *hcl.Attribute, what string, values []T, dst *T) {
	var names []string
	for _, value := range values {
		names = append(names, fmt.Sprint(value))
	}
	text, ok := d.text(attr, "one of "+quoteAll(names, "and"))
	if !ok {
		return
	}
	i := slices.Index(names, text)
	if i < 0 {
		d.fault(attr.Expr.Range(), "Unknown "+what, "%s", notOneOf(text, "a "+what, names))
		return
	}
	*dst = values[i]
	d.set(dst, attr)
}

// preload takes a list of circuits.
func (d *decoder) preload(attr *hcl.Attribute, dst *[]Preload) {
	if attr == nil {
		return
	}
	items, diags := hcl.ExprList(attr.Expr)
	if diags.HasErrors() {
		d.fault(attr.Expr.Range(), "Unsuitable value", `What belongs here is a list such as ["winning-post:32GiB", "porep:32GiB"].`)
		return
	}
	var list []Preload
	for _, item := range items {
		value, ok := d.value(item, cty.String, `a circuit such as "winning-post:32GiB"`)
		if !ok {
			continue
		}
		text := value.AsString()
		circuit, err := parsePreload(text)
		if fault := (*preloadError)(nil); errors.As(err, &fault) {
			d.fault(within(item, text, fault.Offset, len(fault.Part)), fault.Summary, "%s", fault.Reason)
			continue
		}
		if slices.Contains(list, circuit) {
			d.fault(item.Range(), "Duplicate preload", "%s is in the list already.", circuit)
			continue
		}
		list = append(list, circuit)
	}
	*dst = list
	d.set(dst, attr)
}

// preloadError is a fault in one part of a circuit's name, with its place in
// the text.
type preloadError struct {
	Offset          int // of the part, in bytes from the start of the text
	Part            string
	Summary, Reason string
}

func (e *preloadError) Error() string { return e.Reason }

// parsePreload reads the name of a circuit: kind and sector size, as commands
// write them, with a colon between: "winning-post:32GiB". The error is a
// *[preloadError].
func parsePreload(text string) (Preload, error) {
	kindName, sizeName, found := strings.Cut(text, ":")
	if !found {
		return Preload{}, &preloadError{0, text, "Invalid circuit",
			fmt.Sprintf(`%q is not a circuit: write kind and sector size with a colon between, such as "winning-post:32GiB".`, text)}
	}
	kind, err := shared.ParseKind(kindName)
	if err != nil {
		return Preload{}, &preloadError{0, kindName, "Unknown kind of proof", notOneOf(kindName, "a kind of proof", names(shared.Kinds()))}
	}
	size, err := shared.ParseSectorSize(sizeName)
	if err != nil {
		return Preload{}, &preloadError{len(kindName) + 1, sizeName, "Unknown sector size", notOneOf(sizeName, "a sector size", names(shared.SectorSizes()))}
	}
	return Preload{Kind: kind, SectorSize: size}, nil
}

func names[T fmt.Stringer](values []T) []string {
	var list []string
	for _, value := range values {
		list = append(list, value.String())
	}
	return list
}
