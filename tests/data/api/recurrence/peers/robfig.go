// Prints what robfig/cron v3 answers to the questions on its standard input.
package main

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

func main() {
	parser := cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow)
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		parts := strings.Split(lines.Text(), "\t")
		zone, err := time.LoadLocation(parts[0])
		if err != nil {
			panic(err)
		}
		schedule, err := parser.Parse(parts[1])
		if err != nil {
			panic(err)
		}
		var first, last int64
		fmt.Sscan(parts[2], &first)
		fmt.Sscan(parts[3], &last)
		var found []string
		for at := schedule.Next(time.Unix(first*60-1, 0).In(zone)); at.Unix() < last*60; at = schedule.Next(at) {
			found = append(found, fmt.Sprint(at.Unix()/60-first))
		}
		fmt.Println(strings.Join(found, " "))
	}
}
