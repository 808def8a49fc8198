package main

import (
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
)

func newClusters() *cobra.Command {
	var g gateway
	var f format
	cmd := &cobra.Command{
		Use:   "clusters",
		Short: "List the clusters of the gateway, and whether they answer",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, err := g.connect()
			if err != nil {
				return err
			}
			defer client.Close()
			answer, err := client.ListClusters(cmd.Context(), &dagbridgev1.ListClustersRequest{})
			if err != nil {
				return err
			}
			return f.print(cmd.OutOrStdout(), answer, func(w io.Writer) {
				fmt.Fprintln(w, "NAME\tKIND\tREACHABLE\tLIVE JOBS\tLAST LOOK\tMESSAGE")
				for _, c := range answer.GetClusters() {
					fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%s\t%s\n", c.GetName(), c.GetKind(), reachable(c), c.GetLiveJobs(), when(c.GetLastLookTime()), dash(c.GetMessage()))
				}
			})
		},
	}
	g.addFlags(cmd.Flags())
	f.addFlag(cmd)
	return cmd
}

// reachable is "-" of a cluster that nothing has been asked yet: it is not looked at while no job is live there.
func reachable(c *dagbridgev1.Cluster) string {
	if c.GetReachable() && c.GetLastLookTime() == nil {
		return "-"
	}
	return strconv.FormatBool(c.GetReachable())
}
