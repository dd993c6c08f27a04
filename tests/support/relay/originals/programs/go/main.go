// Reads lines of a kind and a text in base64, and answers each with what Go's own functions read, or "-".
package main

import (
	"bufio"
	"encoding/base64"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		kind, text64, _ := strings.Cut(lines.Text(), " ")
		bytes, _ := base64.StdEncoding.DecodeString(text64)
		text := string(bytes)
		switch kind {
		case "rfc3339":
			t, err := time.Parse(time.RFC3339, text)
			if err != nil {
				fmt.Println("-")
			} else {
				// Parts of a millisecond count up: nothing leaves before its instant.
				fmt.Println(t.Unix()*1000 + (int64(t.Nanosecond())+999_999)/1_000_000)
			}
		case "epoch":
			n, err := strconv.ParseInt(text, 10, 64)
			if err != nil || n < 0 {
				fmt.Println("-")
			} else {
				fmt.Println(n)
			}
		case "name":
			// The original counts no other name as a bad one.
			if strings.TrimSpace(text) == "" {
				fmt.Println("-")
			} else {
				fmt.Println("a name")
			}
		}
	}
}
