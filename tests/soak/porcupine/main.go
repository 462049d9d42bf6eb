// Command porcupine judges what clients of a cluster saw: it reads a history of operations on registers (blocks), one JSON
// object a line, and has the porcupine checker look for an order that explains each register.
//
// Reading order: main, read (a history), completed (what an unanswered write may have done), judge (one register).
//
//	{"c":1,"t0":5,"t1":9,"op":"w","b":3,"v":77}
//
// is client 1 writing the value 77 into block 3, asked at 5 ns and answered at 9 ns. A t1 of -1 says that no answer came,
// so that a write may take effect at any time after t0, or never. Every register begins with 0.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"sort"
	"time"

	"github.com/anishathalye/porcupine"
)

// An entry is a line of a history.
type entry struct {
	Client   int    `json:"c"`
	Asked    int64  `json:"t0"`
	Answered int64  `json:"t1"`
	Kind     string `json:"op"`
	Block    uint64 `json:"b"`
	Value    uint64 `json:"v"`
}

// A verdict is what came of a run.
type verdict struct {
	Operations   int      `json:"operations"`
	Registers    int      `json:"registers"`
	Linearizable bool     `json:"linearizable"`
	Illegal      []uint64 `json:"illegal"`
	Unknown      []uint64 `json:"unknown"`
	Seconds      float64  `json:"seconds"`
}

func main() {
	limit := flag.Duration("limit", time.Minute, "time for each register, after which its verdict is unknown")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: porcupine [-limit 1m] HISTORY.jsonl")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() != 1 {
		flag.Usage()
		os.Exit(2)
	}
	found, err := check(flag.Arg(0), *limit)
	if err != nil {
		fmt.Fprintln(os.Stderr, "porcupine:", err)
		os.Exit(2)
	}
	out, _ := json.Marshal(found)
	fmt.Println(string(out))
	if !found.Linearizable {
		os.Exit(1)
	}
}

func check(path string, limit time.Duration) (verdict, error) {
	started := time.Now()
	file, err := os.Open(path)
	if err != nil {
		return verdict{}, err
	}
	defer file.Close()
	registers, count, err := read(file)
	if err != nil {
		return verdict{}, fmt.Errorf("%s: %w", path, err)
	}
	found := verdict{Operations: count, Registers: len(registers), Illegal: []uint64{}, Unknown: []uint64{}}
	for _, block := range sorted(registers) {
		switch judge(registers[block], limit) {
		case porcupine.Illegal:
			found.Illegal = append(found.Illegal, block)
		case porcupine.Unknown:
			found.Unknown = append(found.Unknown, block)
		}
	}
	found.Linearizable = len(found.Illegal) == 0 && len(found.Unknown) == 0
	found.Seconds = time.Since(started).Seconds()
	return found, nil
}

// read groups a history's lines by register.
func read(from io.Reader) (map[uint64][]entry, int, error) {
	registers, count := map[uint64][]entry{}, 0
	lines := bufio.NewScanner(from)
	for lines.Scan() {
		var one entry
		if err := json.Unmarshal(lines.Bytes(), &one); err != nil {
			return nil, 0, fmt.Errorf("line %d: %w", count+1, err)
		}
		if one.Kind != "r" && one.Kind != "w" {
			return nil, 0, fmt.Errorf("line %d: no operation %q", count+1, one.Kind)
		}
		count++
		registers[one.Block] = append(registers[one.Block], one)
	}
	if count == 0 && lines.Err() == nil {
		return nil, 0, fmt.Errorf("the history is empty, so it shows nothing")
	}
	return registers, count, lines.Err()
}

func sorted(registers map[uint64][]entry) []uint64 {
	blocks := make([]uint64, 0, len(registers))
	for block := range registers {
		blocks = append(blocks, block)
	}
	sort.Slice(blocks, func(i, j int) bool { return blocks[i] < blocks[j] })
	return blocks
}

// completed gives every operation an end. Values are unique, but for 0. An unanswered read says nothing. An unanswered
// write whose value nobody read may be left out: had it taken effect, nobody could tell. One that was read took effect
// before the first such read was answered. One of 0 stays open until the end of time.
func completed(entries []entry) []porcupine.Operation {
	seen := map[uint64]int64{}
	for _, one := range entries {
		if one.Kind != "r" || one.Answered < 0 {
			continue
		}
		if first, ok := seen[one.Value]; !ok || one.Answered < first {
			seen[one.Value] = one.Answered
		}
	}
	operations := make([]porcupine.Operation, 0, len(entries))
	for _, one := range entries {
		end := one.Answered
		if end < 0 {
			first, read := seen[one.Value]
			switch {
			case one.Kind == "r" || !read:
				continue
			case one.Value == 0:
				end = math.MaxInt64
			case first < one.Asked:
				// Read before it was written: its interval stays sound, and the read remains without explanation.
				end = one.Asked
			default:
				end = first
			}
		}
		operations = append(operations, porcupine.Operation{
			ClientId: one.Client, Input: one, Call: one.Asked, Output: one.Value, Return: end,
		})
	}
	return operations
}

func judge(entries []entry, limit time.Duration) porcupine.CheckResult {
	register := porcupine.Model{
		Init: func() interface{} { return uint64(0) },
		Step: func(state, input, output interface{}) (bool, interface{}) {
			if input.(entry).Kind == "w" {
				return true, input.(entry).Value
			}
			return output == state, state
		},
	}
	return porcupine.CheckOperationsTimeout(register, completed(entries), limit)
}
