package main

import "github.com/spf13/cobra"

// verb builds the command of one verb over the app.
type verb = func(*app) *cobra.Command

// verbs lists the verbs in the order of the help: one line for each file.
func verbs() []verb {
	return []verb{
		newDemoVerb,
		newTrainVerb,
		newTuneCmd,
		newPredictCmd,
		newEvalCmd,
		newExportCmd,
		newExplainCmd,
		newIngestCmd,
		newInfoCmd,
		newGenerateCmd,
		newCertsCmd,
		newSubmitCmd,
		newJobsCmd,
		newStatusCmd,
		newLogsCmd,
		newCancelCmd,
		newResumeCmd,
		newRestoreCmd,
		newWorkersCmd,
		newDrainCmd,
		newStoresCmd,
		newClusterCmd,
		newYarnCmd,
		newCoordinatorCmd,
		newStoreCmd,
		newWorkerCmd,
		newMapReduceTaskCmd,
		newVersionCmd,
	}
}
