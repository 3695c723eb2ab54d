package host

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/interlock-prover/interlock/shared"
)

// DescribeCards has the plugin's program look at the cards of the machine, in a process of its own that ends with that.
// No plugin is started. library is the configured path of the library with the kernels, or empty. If ctx ends first, the
// process is killed.
func DescribeCards(ctx context.Context, options Options, library string) (report shared.CardsReport, err error) {
	if options, err = options.withDefaults(); err != nil {
		return report, err
	}
	cmd := exec.CommandContext(ctx, options.PluginPath, shared.CardsCommand, library)
	if options.PluginSHA256 != "" {
		program, err := openProgram(options.PluginPath, options.PluginSHA256)
		if err != nil {
			return report, err
		}
		defer program.close()
		cmd.Path = program.path()
	}
	var out, complaints bytes.Buffer
	cmd.Env, cmd.Stdout, cmd.Stderr = append(os.Environ(), options.Env...), &out, &complaints
	cmd.WaitDelay = time.Second // for what it started, if it left that behind
	if err = cmd.Run(); err == nil {
		err = json.Unmarshal(out.Bytes(), &report)
	} else if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		err = fmt.Errorf("asking %s what cards there are: %w", options.PluginPath, err)
		if text := strings.TrimSpace(complaints.String()); text != "" {
			err = fmt.Errorf("%w; it wrote:\n\t%s", err, strings.ReplaceAll(text, "\n", "\n\t"))
		}
	}
	return report, err
}
