package main

import (
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestHistories(t *testing.T) {
	paths, err := filepath.Glob("../histories/*.jsonl")
	if err != nil || len(paths) < 5 {
		t.Fatalf("histories: %v, %v", paths, err)
	}
	for _, path := range paths {
		found, err := check(path, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		good := strings.HasPrefix(filepath.Base(path), "good-")
		if found.Linearizable != good {
			t.Errorf("%s: linearizable %v", path, found.Linearizable)
		}
	}
}

func TestNonsenseIsRefused(t *testing.T) {
	for _, text := range []string{"", "{", `{"c":1,"t0":1,"t1":2,"op":"x","b":1,"v":1}`} {
		if _, _, err := read(strings.NewReader(text)); err == nil {
			t.Errorf("%q was read", text)
		}
	}
}
