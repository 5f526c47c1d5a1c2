package conformance

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// agreed are the cases that the suite was promised to have; it has more. A name
// that goes is a promise that goes.
var agreed = map[string]string{
	"Nodes": `
		CreateGet CreateExists CreateNoParent CreateUnderEphemeral CreateRoot GetMissing SetMissing SetAnyVersion
		SetRightVersion SetWrongVersion SetVersionIncrements DeleteMissing DeleteAnyVersion DeleteWrongVersion
		DeleteWithChildren RecreateRestartsVersion RecreateNewCreated EmptyValue NilVsEmpty ValueAtLimit
		ValueOverLimitNothingSent BinaryValue UnicodeSegment SegmentAtLimit PathInvalidTable DeepPath
		CallerMutationIsolated
	`,
	"Lists": `
		ChildrenEmpty ChildrenSorted ChildrenOneLevelOnly ChildrenPrefixSibling ChildrenMissingDir List10k
		ListDuringChurnNoTornNode
	`,
	"Commit": `
		AllApplied NoneAppliedOnFailure FailureIndexFirst FailureIndexMiddle FailureIndexTwoBadPicksFirst CheckExists
		CheckMissing CheckVersion CheckOnly CreateParentAndChildSameCommit DeleteChildAndParentSameCommit
		DuplicatePathRefused EmptyCommit MaxOps OverMaxOps OverBytes SameRevisionForAll RevisionsIncrease
		ConcurrentCASOneWinner ConcurrentCounterNoLostUpdate EphemeralInCommit EphemeralAndPersistentMixed
		SetKeepsEphemeral CommitOnLostSession ContextCancelledBeforeSend
	`,
	"Sessions": `
		TwoSessionsDistinct CloseRemovesEphemerals CloseIdempotent CloseUnreachableBounded OwnedFlag
		ExpireRemovesEphemerals ExpireClosesDone ExpireKeepsPersistent NoWriteAfterLoss DoneNotAfterDeadline
		DeadlineNeverAfterServerDeletion DeadlineAdvances DropReconnectSameSession DropKeepsEphemerals PauseShort
		PauseLong RestartServerKeepsData RestartServerSessionRule LoseLeaderKeepsSession
		StalledEndpointDoesNotKillSession ReconnectWithin2s NoGoroutineLeak
	`,
	"Uncertain": `
		AnswerLostCreate AnswerLostCommit RequestLostCommit RetryChainExactlyOnce OversizeDoesNotPoisonNeighbours
		ErrorClassTable
	`,
	"Watch": `
		InitialThenSynced SeesCreate SeesSet SeesDelete LastStateAlways PerPathMonotonic RecreateNewCreated
		OneLevelOnly SurvivesDrop ChangesDuringDropSeen CreateDeleteDuringDropNotWrong AfterCompactionResyncs
		AfterRestart EndsOnSessionLoss EndsOnCtx StopConsumingFreesAll SlowConsumerBoundedMemory TwoWatchersAgree
		ReadNotOlderThanEvent EphemeralExpirySeen 10kNodesInitial
	`,
	"Locks": `
		Exclusive ExclusiveWithinOneSession Fair TokenIncreases GuardPassesWhileHeld GuardFailsAfterRelease
		GuardFailsAfterExpiry LostClosesOnExpire LostNotAfterDeadline CancelWhileWaitingLeavesNoNode
		WaiterExpiryDoesNotBlock NoPhantomLeader ReleaseTwice ReleaseAfterTakeoverDoesNotDeleteSuccessor NoHerd
		TryLock ContendersUnderFaults
	`,
	"Models": `
		RapidSequential LinearizableRegister LinearizableCommit WatchConverges
	`,
}

func TestAgreedCasesExist(t *testing.T) {
	all := Cases(3)
	count := 0
	for group, names := range agreed {
		for name := range strings.FieldsSeq(names) {
			require.Contains(t, all, group+"/"+name)
			count++
		}
	}
	require.Equal(t, 129, count)
}
