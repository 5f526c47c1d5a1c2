package failpoint

// A Point is a place in the engine.
type Point string

// The places. Those before and after a commit stand around all its attempts.
const (
	BeforeRecord   Point = "before a begin, an end or another change of a ledger is committed"
	AfterRecord    Point = "after a change of a ledger is committed, before anybody is told"
	BeforeShow     Point = "before what runs is shown"
	AfterShow      Point = "after what runs is shown"
	BeforeEnter    Point = "after a begin is committed, before the item's function is called"
	Returned       Point = "an item's function has returned, and nothing is recorded of it"
	BeforeLead     Point = "before a commit of the leader"
	AfterLead      Point = "after a commit of the leader, before what follows it"
	AfterAccept    Point = "after a request is accepted, before anything follows from it"
	BeforeElect    Point = "before a candidacy is committed"
	AfterElect     Point = "after a candidacy is committed"
	BeforeRegister Point = "before a registration is committed"
	AfterRegister  Point = "after a registration is committed, before its ledger is read"
	BeforeLeave    Point = "before a departure is committed"
	BeforeHear     Point = "after a round is claimed, before its listener is called"
	AfterHear      Point = "a round's listener has returned, and nothing says so"
	SessionDone    Point = "the session has ended, before runs are cancelled"
	BeforeClose    Point = "the session has ended, before it is closed"
)

// Points are all places.
var Points = []Point{
	BeforeRecord, AfterRecord, BeforeShow, AfterShow, BeforeEnter, Returned, BeforeLead, AfterLead, BeforeElect, AfterElect,
	BeforeRegister, AfterRegister, BeforeLeave, BeforeHear, AfterHear, SessionDone, BeforeClose, AfterAccept,
}

// A Mutation is a defect that a test can switch on, to prove that it would be found.
type Mutation string

// The mutations.
const (
	BacklogDropped      Mutation = "what is owed at Stop is recorded as done"
	SessionEndedEarly   Mutation = "a lost session is ended before its functions have returned"
	OldRegistrationKept Mutation = "registering anew leaves the old registration behind"
	RunsForgotten       Mutation = "registering anew forgets what runs"
	LifeUnchecked       Mutation = "commits do not check the life"
	HoldIgnored         Mutation = "items begin while their ledger is held"
	BaseEarly           Mutation = "an epoch's start is taken before all ledgers are held"
	RedoIgnored         Mutation = "what a dead instance ran is neither run again nor told"
	RedoMovesCursor     Mutation = "the begin of a fire that runs again moves the cursor back to it"
	TriesOfOwed         Mutation = "a death counts as a try of a fire that was to run again and had not begun"
	AskedForgotten      Mutation = "the record does not say which runs were begun that somebody asked for"
	BoundIgnored        Mutation = "what is bound to an instance that is away is given to others"
	LentForGood         Mutation = "what runs again of an item that is bound takes the item along"
	PictureKept         Mutation = "the end of a run leaves its running node behind"
	PageLeftOut         Mutation = "a ledger's root is written without a page that has changed"
	AheadNotHeld        Mutation = "what was begun before it was due runs at once"
	BarrierOpen         Mutation = "items start before the listener before their round has returned"
	ClockIgnored        Mutation = "items begin by a clock that is further off the leader's than is allowed"
	ClaimUnversioned    Mutation = "a claim of a round is written whatever its version and the term's are"
)

// Mutations are all of them.
var Mutations = []Mutation{
	BacklogDropped, SessionEndedEarly, OldRegistrationKept, RunsForgotten, LifeUnchecked, HoldIgnored, BaseEarly,
	RedoIgnored, RedoMovesCursor, TriesOfOwed, PictureKept, ClaimUnversioned, AskedForgotten, BarrierOpen,
	BoundIgnored, LentForGood, ClockIgnored, PageLeftOut, AheadNotHeld,
}
