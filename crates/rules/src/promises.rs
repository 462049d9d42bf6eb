//! The rules at which a mistake would break a promise. Each machine is handed the rules that it goes by: [`SOUND`], but
//! where a test of the checkers hands in others, of which one is broken on purpose (`planted`).

use base::{BrickId, NodeId, Stamp};
use core::fmt::Debug;
use core::time::Duration;
use wire::{GroupView, PrepareOutcome};

/// The rules, each with what is right. Where nothing is said they are those of every product.
pub trait Rules: Debug + Sync {
    /// Whether a brick works on a request, by whether the request's view is in force, noted, and not fenced.
    fn works_under(&self, is_in_force: bool) -> bool {
        is_in_force
    }

    /// Whether a brick keeps still about a group, by whether its disks may lack what it promised.
    fn doubts(&self, may_lack: bool) -> bool {
        may_lack
    }

    /// Whether the directory takes a brick's disk for an old one, by whether its journal ends before what was told of it.
    fn is_old_disk(&self, ends_before: bool) -> bool {
        ends_before
    }

    /// Whether a brick's run may count in place of one that is silent, by whether that one's lease has ended.
    fn may_count(&self, lease_has_ended: bool) -> bool {
        lease_has_ended
    }

    /// Whether a brick trusts its views, by whether it has a lease, and whether it ever had one.
    fn counts_on_lease(&self, is_leased: bool, _was_leased: bool) -> bool {
        is_leased
    }

    /// Whether the directory keeps still, by whether a brick knows of a later map than its store holds.
    fn refuses_as_old(&self, is_old: bool) -> bool {
        is_old
    }

    /// Behind how many bytes a page of changes ends.
    fn page_bytes(&self, configured: usize) -> usize {
        configured
    }

    /// Up to which version of the map the directory forgets deletions, by which one all bricks have confirmed.
    fn forgets_up_to(&self, confirmed: u64) -> Option<u64> {
        Some(confirmed)
    }

    /// After how long the directory repeats a question that a member has not answered, by how long it waited the first time and how long it is to wait now.
    fn repeats_after(&self, _first: Duration, now: Duration) -> Duration {
        now
    }

    /// Whether a brick forgets a group, by whether nothing is left of its family.
    fn forgets(&self, is_gone: bool) -> bool {
        is_gone
    }

    /// Whether a brick lets a branch go, by whether a later view of its family leaves it out.
    fn lets_go(&self, is_left_out: bool) -> bool {
        is_left_out
    }

    /// Whether a number may be lent, by whether nobody may draw stamps under it.
    fn lends(&self, is_free: bool) -> bool {
        is_free
    }

    /// How much content may come to a disk, by what the disk has told and what is on its way there; [`u64::MAX`] if all may.
    fn room(&self, told: u64) -> u64 {
        told
    }

    /// What a member answers a write, by what the stamps that are there say of it.
    fn verdict(&self, by_stamps: Result<(), PrepareOutcome>) -> Result<(), PrepareOutcome> {
        by_stamps
    }

    /// What a gateway takes note of when a member has seen a later stamp than that of its write.
    fn seen(&self, stamp: Stamp) -> Stamp {
        stamp
    }

    /// Whether a member that catches up compares its block at `lba` with those of others.
    fn compares(&self, _lba: u64) -> bool {
        true
    }

    /// The one member of mirrors that a repair of the member at `slot` fetches from; none where it is any current one.
    fn repair_source(&self, _view: &GroupView, _slot: u8) -> Option<u8> {
        None
    }

    /// Whether a repair may replace what is here, by whether that is later than what was fetched.
    fn repair_replaces(&self, is_later_here: bool) -> bool {
        !is_later_here
    }

    /// Whether a read is served, by whether the view that it names admits it; if not, the view to tell the reader. And the view that is in force.
    fn serves_read(
        &self,
        admitted: Result<(), Option<GroupView>>,
        _from: NodeId,
        (_in_force, _me): (Option<&GroupView>, BrickId),
    ) -> Result<(), Option<GroupView>> {
        admitted
    }

    /// Whether a read that sees what is not decided is given it, where there is some.
    fn shows_undecided(&self) -> bool {
        true
    }

    /// Whether a write waits for stand-ins.
    fn waits_for_stand_ins(&self) -> bool {
        true
    }

    /// Whether a reader asks if a newer write is complete, before it goes back to what was before.
    fn asks_whether_complete(&self) -> bool {
        true
    }

    /// Whether a write that has a record is decided by it, and not by whether all members have it.
    fn asks_the_record(&self) -> bool {
        true
    }

    /// How many members are to confirm a view for reads that count on no clock, of as many as are enough.
    fn confirmations(&self, enough: u8) -> u8 {
        enough
    }

    /// Whether bricks make again what others have lost of objects.
    fn restores(&self) -> bool {
        true
    }

    /// Whether a version of an object becomes visible, by whether it is held open for whoever puts it.
    fn commits(&self, is_open: bool) -> bool {
        is_open
    }

    /// Whether a version becomes visible, by whether what its putter asked for holds.
    fn replaces(&self, condition_holds: bool) -> bool {
        condition_holds
    }

    /// Whether a version of an object that nobody sees is kept, by whether later ones share fragments of it.
    fn keeps(&self, is_shared: bool) -> bool {
        is_shared
    }

    /// Whether a version shares the fragments of its base, by whether these are where it says.
    fn shares(&self, is_there: bool) -> bool {
        is_there
    }

    /// Whether a brick's word of where fragments are is taken, by whether it follows from what is known of them.
    fn amends(&self, follows: bool) -> bool {
        follows
    }

    /// Whether a brick gives back what it has of a segment, by whether the index has noted that nobody is to look for it there.
    fn gives_back(&self, is_noted: bool) -> bool {
        is_noted
    }

    /// Whether a write within a stripe unit is one write.
    fn keeps_units_whole(&self) -> bool {
        true
    }

    /// Whether a segment is handed to its reader, by whether it is what was put.
    fn trusts(&self, is_right: bool) -> bool {
        is_right
    }

    /// Whether bricks may give back what a putter calls off.
    fn gives_back_called_off(&self) -> bool {
        true
    }

    /// How long after its start a brick looks for garbage of objects for the first time: `soon`, and not as late as it does from then on.
    fn first_look(&self, soon: Duration, _every: Duration) -> Duration {
        soon
    }

    /// Whether a put of a segment is over once something is stored, by whether that is enough.
    fn ends_put(&self, is_enough: bool) -> bool {
        is_enough
    }

    /// Whether all groups of a family fence before any goes on, by whether a view moves a volume to another head.
    fn fences_family(&self, moves_a_head: bool) -> bool {
        moves_a_head
    }
}

#[derive(Debug)]
struct Sound;

impl Rules for Sound {}

/// The rules of every product.
pub const SOUND: &dyn Rules = &Sound;
