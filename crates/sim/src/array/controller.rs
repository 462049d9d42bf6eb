//! The controller: it plans one request after the other, and what it has planned is sent when it has done so.

/// What planning is assumed to take: so much a plan, and so much a copy that is looked at.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Costs {
    pub plan_ns: f64,
    pub look_ns: f64,
}

/// Where the time that planning takes comes from.
pub enum Planning<'a> {
    /// From committed costs: a run repeats.
    Modelled(Costs),
    /// From a clock, which tells nanoseconds from any origin: a run does not repeat.
    Measured(&'a mut dyn FnMut() -> u64),
}

pub(super) struct Controller<'a, 'b> {
    planning: &'b mut Planning<'a>,
    free_ns: u64,
    plans: u64,
    planning_ns: u64,
}

impl<'a, 'b> Controller<'a, 'b> {
    pub(super) fn new(planning: &'b mut Planning<'a>) -> Controller<'a, 'b> {
        Controller { planning, free_ns: 0, plans: 0, planning_ns: 0 }
    }

    /// It has nothing to do.
    pub(super) fn rest(&mut self) {
        self.free_ns = 0;
    }

    /// When it can begin with what comes now.
    pub(super) fn begins_ns(&self, now_ns: u64) -> u64 {
        self.free_ns.max(now_ns)
    }

    /// Plans what comes now: `plan` does it, and gives how many copies were looked at. Gives when it is done.
    pub(super) fn plan(&mut self, now_ns: u64, plan: impl FnOnce() -> u64) -> u64 {
        let took_ns = match self.planning {
            Planning::Modelled(costs) => (costs.plan_ns + costs.look_ns * plan() as f64) as u64,
            Planning::Measured(clock) => {
                let began_ns = clock();
                plan();
                clock() - began_ns
            }
        };
        self.plans += 1;
        self.planning_ns += took_ns;
        self.free_ns = self.begins_ns(now_ns) + took_ns;
        self.free_ns
    }

    /// What a plan took on average, in nanoseconds.
    pub(super) fn mean_ns(&self) -> f64 {
        self.planning_ns as f64 / self.plans.max(1) as f64
    }
}
