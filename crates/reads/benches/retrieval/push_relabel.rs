//! The published way to the best choice for one request, to compare the solver with: the *integrated* maximum flow of Altiparmak
//! and Tosun ("Continuous Retrieval of Replicated Data from Heterogeneous Storage Arrays"; ICPP 2012), on a push-relabel as
//! Goldberg's `hi_pr` is.
//!
//! The network: source to bucket with as many units as the bucket needs, bucket to holder with one, disk j to sink with
//! floor((T - X_j) / C_j). The flow carries all accesses if and only if all can have arrived by T.
//!
//! 1. Binary search over T until the interval is shorter than the shortest access. The preflow of the last T that was too early is
//!    kept: the next T begins with that.
//! 2. From there the disks with the earliest next completions get one unit more, and the flow continues, until it carries all.
//!
//! `hi_pr`: the active vertex with the highest label is discharged; labels are computed anew after so much work; where no vertex has
//! a label, those above are cut off (gap). Only its first phase runs: excess that cannot reach the sink stays where it is, because a
//! later T may let it through, and at the end there is none.
//!
//! Better than published, so that the comparison is fair: disks that hold nothing of the request are not in the network; the upper
//! bound is what the greedy choice needs, not all buckets on the slowest disk; in step 2 as many disks get a unit more at once as
//! accesses are missing, and after that only labels that fall are computed anew.

use reads::distribute::retrieval::{Disk, Request};

/// No vertex.
const NONE: u32 = u32::MAX;
/// The cost of a relabelling in arcs looked at, beside those of the vertex: `BETA` of `hi_pr`.
const RELABEL_COST: usize = 12;
/// Labels are computed anew after twice (`GLOB_UPDT_FREQ` = 0.5) this number for each vertex (`ALPHA`) and one for each arc.
const VERTEX_COST: usize = 6;

/// A disk that holds something of the request.
#[derive(Clone, Copy)]
struct Place {
    disk: u32,
    free_ns: u64,
    access_ns: u64,
    /// How many accesses it can have completed by T: the capacity of its arc to the sink.
    capacity: u32,
    /// The flow of that arc.
    flow: u32,
}

impl Place {
    /// How many accesses it can have completed by a time.
    fn completed(&self, by_ns: u64, most: u32) -> u32 {
        let count = by_ns.saturating_sub(self.free_ns) / self.access_ns;
        count.min(u64::from(most)) as u32
    }

    fn finish_ns(&self, accesses: u32) -> u64 {
        self.free_ns + u64::from(accesses) * self.access_ns
    }
}

/// A vertex: first all buckets, then all places.
#[derive(Clone, Copy)]
struct Vertex {
    /// A lower bound of the number of arcs to the sink; `vertices` if there is no way.
    label: u32,
    excess: u32,
    /// The first arc that may be admissible.
    current: u32,
    /// The next active vertex of the same label.
    next_active: u32,
    /// Its neighbours in the list of all vertices of its label.
    next: u32,
    previous: u32,
}

const VERTEX: Vertex =
    Vertex { label: 0, excess: 0, current: 0, next_active: NONE, next: NONE, previous: NONE };

/// All vertices of a label.
#[derive(Clone, Copy)]
struct Layer {
    active: u32,
    first: u32,
}

const EMPTY: Layer = Layer { active: NONE, first: NONE };

/// See the module. Keeps its buffers from request to request.
#[derive(Default)]
pub(crate) struct PushRelabel {
    /// For each disk of the array the request that touched it last, and its place there.
    place_of: Vec<(u32, u32)>,
    requests: u32,
    places: Vec<Place>,
    /// Of each bucket its first edge, and the number of all; an edge is a bucket and one of its holders.
    begins: Vec<u32>,
    /// Of each edge its bucket, its place, and whether it carries a unit.
    bucket_of: Vec<u32>,
    edge_place: Vec<u32>,
    is_used: Vec<bool>,
    /// The edges of each place, one place's after the other's, and where these begin.
    incident: Vec<u32>,
    incident_begins: Vec<u32>,
    buckets: usize,
    /// The bucket vertices first, then the places.
    vertices: Vec<Vertex>,
    layers: Vec<Layer>,
    highest_active: u32,
    highest: u32,
    work: usize,
    arrived: usize,
    /// The preflow of the last T that was too early.
    saved: Saved,
    queue: Vec<u32>,
}

#[derive(Default)]
struct Saved {
    is_used: Vec<bool>,
    flows: Vec<u32>,
    excesses: Vec<u32>,
    arrived: usize,
}

impl PushRelabel {
    /// Writes into `chosen` from which disk each bucket is read; gives the earliest last arrival.
    pub(crate) fn solve(&mut self, disks: &[Disk], request: &Request, chosen: &mut Vec<u32>) -> u64 {
        self.build(disks, request);
        let all = request.accesses();
        let (mut early_ns, mut late_ns) = self.interval(all);
        let shortest_ns = self.places.iter().map(|place| place.access_ns).min().unwrap_or(1);
        self.save();
        while late_ns - early_ns > shortest_ns {
            let middle_ns = early_ns + (late_ns - early_ns) / 2;
            self.set_capacities(middle_ns);
            self.label_all();
            self.flow();
            if self.arrived == all {
                late_ns = middle_ns;
                self.restore();
            } else {
                early_ns = middle_ns;
                self.save();
            }
        }
        let last_ns = self.raise(early_ns, all);
        chosen.clear();
        let used = self.edge_place.iter().zip(&self.is_used).filter(|(_, is_used)| **is_used);
        chosen.extend(used.map(|(place, _)| self.places[*place as usize].disk));
        last_ns
    }

    /// The network of a request, with all excess at the buckets.
    fn build(&mut self, disks: &[Disk], request: &Request) {
        self.requests += 1;
        if self.place_of.len() < disks.len() {
            self.place_of.resize(disks.len(), (0, 0));
        }
        self.places.clear();
        self.begins.clear();
        self.bucket_of.clear();
        self.edge_place.clear();
        self.vertices.clear();
        self.incident_begins.clear();
        for (bucket, (holders, needed)) in request.buckets().enumerate() {
            self.begins.push(self.edge_place.len() as u32);
            self.vertices.push(Vertex { excess: needed, ..VERTEX });
            for disk in holders {
                let (seen, mut place) = self.place_of[*disk as usize];
                if seen != self.requests {
                    place = self.places.len() as u32;
                    self.place_of[*disk as usize] = (self.requests, place);
                    let Disk { free_ns, access_ns, .. } = disks[*disk as usize];
                    self.places.push(Place { disk: *disk, free_ns, access_ns, capacity: 0, flow: 0 });
                    self.incident_begins.push(0);
                }
                self.incident_begins[place as usize] += 1;
                self.edge_place.push(place);
                self.bucket_of.push(bucket as u32);
            }
        }
        self.begins.push(self.edge_place.len() as u32);
        self.buckets = request.len();
        self.arrived = 0;
        self.vertices.resize(self.buckets + self.places.len(), VERTEX);
        self.is_used.clear();
        self.is_used.resize(self.edge_place.len(), false);
        self.layers.clear();
        self.layers.resize(self.vertices.len() + 2, EMPTY);
        self.sort_edges();
    }

    /// The edges of each place, from the number that each has.
    fn sort_edges(&mut self) {
        let mut end = 0;
        for count in &mut self.incident_begins {
            end += *count;
            *count = end;
        }
        self.incident_begins.push(end);
        self.incident.clear();
        self.incident.resize(end as usize, 0);
        for (edge, place) in self.edge_place.iter().enumerate().rev() {
            let begin = &mut self.incident_begins[*place as usize];
            *begin -= 1;
            self.incident[*begin as usize] = edge as u32;
        }
    }

    /// A time by which not all can have arrived, and one by which all can.
    fn interval(&self, all: usize) -> (u64, u64) {
        let average = all.div_ceil(self.places.len().max(1)) as u32;
        // Some disk reads at least the average. And each bucket takes its time.
        let mut lower_ns = self.places.iter().map(|place| place.finish_ns(average)).min().unwrap_or(1);
        let mut counts = vec![0; self.places.len()];
        let mut upper_ns = 0;
        let mut holders = Vec::new();
        for bucket in 0..self.buckets {
            holders.clear();
            holders.extend_from_slice(
                &self.edge_place[self.begins[bucket] as usize..self.begins[bucket + 1] as usize],
            );
            let alone = |place: &u32| self.places[*place as usize].finish_ns(1);
            let needed = self.vertices[bucket].excess as usize;
            let (_, nth, _) = holders.select_nth_unstable_by_key(needed - 1, alone);
            lower_ns = lower_ns.max(alone(nth));
            let greedy = |place: &u32| self.places[*place as usize].finish_ns(counts[*place as usize] + 1);
            let (earlier, nth, _) = holders.select_nth_unstable_by_key(needed - 1, greedy);
            upper_ns = upper_ns.max(greedy(nth));
            earlier.iter().for_each(|place| counts[*place as usize] += 1);
            counts[*nth as usize] += 1;
        }
        (lower_ns - 1, upper_ns)
    }

    fn set_capacities(&mut self, by_ns: u64) {
        for (at, place) in self.places.iter_mut().enumerate() {
            let held = self.incident_begins[at + 1] - self.incident_begins[at];
            place.capacity = place.completed(by_ns, held);
        }
    }

    fn save(&mut self) {
        self.saved.is_used.clone_from(&self.is_used);
        self.saved.flows.clear();
        self.saved.flows.extend(self.places.iter().map(|place| place.flow));
        self.saved.excesses.clear();
        self.saved.excesses.extend(self.vertices.iter().map(|vertex| vertex.excess));
        self.saved.arrived = self.arrived;
    }

    fn restore(&mut self) {
        self.is_used.clone_from(&self.saved.is_used);
        self.places.iter_mut().zip(&self.saved.flows).for_each(|(place, flow)| place.flow = *flow);
        let excesses = self.vertices.iter_mut().zip(&self.saved.excesses);
        excesses.for_each(|(vertex, excess)| vertex.excess = *excess);
        self.arrived = self.saved.arrived;
    }

    /// From a time that is too early, completion by completion, until all can have arrived.
    fn raise(&mut self, early_ns: u64, all: usize) -> u64 {
        self.set_capacities(early_ns);
        self.label_all();
        let next = |place: &Place| place.finish_ns(place.completed(early_ns, u32::MAX) + 1);
        let mut completions: Vec<(u64, u32)> =
            self.places.iter().zip(0..).map(|(place, at)| (next(place), at)).collect();
        // The interval is at most the shortest access, so that no disk completes twice in it.
        completions.sort_unstable();
        let Some(&(mut last_ns, _)) = completions.first() else { return 0 };
        let mut rest = &completions[..];
        loop {
            let (raised, others) = rest.split_at(rest.partition_point(|(time_ns, _)| *time_ns <= last_ns));
            raised.iter().for_each(|(_, place)| self.places[*place as usize].capacity += 1);
            self.label_from(raised.iter().map(|(_, place)| *place));
            self.flow();
            if self.arrived == all {
                return last_ns;
            }
            rest = others;
            last_ns = self.earliest_ns(rest, all - self.arrived);
        }
    }

    /// The earliest time at which so many more accesses can get through: each of the next completions lets one through, if its disk
    /// lies on the source's side of the cut.
    fn earliest_ns(&self, completions: &[(u64, u32)], missing: usize) -> u64 {
        let is_cut = |place: u32| self.vertices[self.buckets + place as usize].label == self.unreachable();
        let mut cut = completions.iter().filter(|(_, place)| is_cut(*place));
        cut.nth(missing - 1).expect("all arrive by the upper bound").0
    }

    fn unreachable(&self) -> u32 {
        self.vertices.len() as u32 + 1
    }

    fn degree(&self, vertex: u32) -> usize {
        let (begins, at) = match (vertex as usize).checked_sub(self.buckets) {
            None => (&self.begins, vertex as usize),
            Some(place) => (&self.incident_begins, place),
        };
        (begins[at + 1] - begins[at]) as usize
    }

    /// Exact labels, from the sink backwards.
    fn label_all(&mut self) {
        self.work = 0;
        self.layers.fill(EMPTY);
        (self.highest_active, self.highest) = (0, 0);
        let unreachable = self.unreachable();
        self.vertices.iter_mut().for_each(|vertex| vertex.label = unreachable);
        let open = self.places.iter().zip(0..).filter(|(place, _)| place.flow < place.capacity);
        let open: Vec<u32> = open.map(|(_, at)| at).collect();
        self.label_from(open.into_iter());
    }

    /// The labels that are lower because these places have room. No vertex may be active, but for those without a label.
    fn label_from(&mut self, open: impl Iterator<Item = u32>) {
        let mut queue = core::mem::take(&mut self.queue);
        queue.clear();
        open.for_each(|place| self.lower(self.buckets as u32 + place, 1, &mut queue));
        let mut at = 0;
        while at < queue.len() {
            let vertex = queue[at] as usize;
            at += 1;
            let above = self.vertices[vertex].label + 1;
            match vertex.checked_sub(self.buckets) {
                None => {
                    for edge in self.begins[vertex]..self.begins[vertex + 1] {
                        if self.is_used[edge as usize] {
                            let place = self.buckets as u32 + self.edge_place[edge as usize];
                            self.lower(place, above, &mut queue);
                        }
                    }
                }
                Some(place) => {
                    for at in self.incident_begins[place]..self.incident_begins[place + 1] {
                        let edge = self.incident[at as usize] as usize;
                        if !self.is_used[edge] {
                            self.lower(self.bucket_of[edge], above, &mut queue);
                        }
                    }
                }
            }
        }
        self.queue = queue;
    }

    fn lower(&mut self, vertex: u32, label: u32, queue: &mut Vec<u32>) {
        let old = self.vertices[vertex as usize].label;
        if old <= label {
            return;
        }
        if old < self.unreachable() {
            self.remove(vertex);
        }
        self.vertices[vertex as usize].label = label;
        self.vertices[vertex as usize].current = 0;
        self.insert(vertex);
        queue.push(vertex);
    }

    /// Into the list of its label, and that of active ones if it has excess.
    fn insert(&mut self, vertex: u32) {
        self.enlist(vertex);
        if self.vertices[vertex as usize].excess > 0 {
            self.activate(vertex);
        }
    }

    fn enlist(&mut self, vertex: u32) {
        let label = self.vertices[vertex as usize].label;
        let first = core::mem::replace(&mut self.layers[label as usize].first, vertex);
        let own = &mut self.vertices[vertex as usize];
        (own.next, own.previous) = (first, NONE);
        if first != NONE {
            self.vertices[first as usize].previous = vertex;
        }
        self.highest = self.highest.max(label);
    }

    /// Out of the list of its label. It must not be in that of active ones.
    fn remove(&mut self, vertex: u32) {
        let Vertex { label, next, previous, .. } = self.vertices[vertex as usize];
        match previous {
            NONE => self.layers[label as usize].first = next,
            previous => self.vertices[previous as usize].next = next,
        }
        if next != NONE {
            self.vertices[next as usize].previous = previous;
        }
    }

    fn activate(&mut self, vertex: u32) {
        let label = self.vertices[vertex as usize].label;
        let layer = &mut self.layers[label as usize];
        self.vertices[vertex as usize].next_active = core::mem::replace(&mut layer.active, vertex);
        self.highest_active = self.highest_active.max(label);
    }

    /// Discharges until no excess can reach the sink.
    fn flow(&mut self) {
        let work_max = 2 * (VERTEX_COST * self.vertices.len() + 2 * self.edge_place.len());
        while self.highest_active > 0 {
            let layer = &mut self.layers[self.highest_active as usize];
            let vertex = layer.active;
            if vertex == NONE {
                self.highest_active -= 1;
                continue;
            }
            layer.active = self.vertices[vertex as usize].next_active;
            self.discharge(vertex);
            if self.work > work_max {
                self.label_all();
            }
        }
    }

    /// Pushes a vertex's excess on and relabels it, until it has no excess or no way.
    fn discharge(&mut self, vertex: u32) {
        loop {
            match (vertex as usize).checked_sub(self.buckets) {
                None => self.push_bucket(vertex),
                Some(place) => self.push_place(vertex, place),
            }
            if self.vertices[vertex as usize].excess == 0 || !self.relabel(vertex) {
                return;
            }
        }
    }

    fn push_bucket(&mut self, vertex: u32) {
        let mut own = self.vertices[vertex as usize];
        let begin = self.begins[vertex as usize];
        let end = self.begins[vertex as usize + 1];
        let mut edge = begin + own.current;
        while edge < end {
            let place = self.buckets as u32 + self.edge_place[edge as usize];
            let other = &mut self.vertices[place as usize];
            if !self.is_used[edge as usize] && other.label + 1 == own.label {
                self.is_used[edge as usize] = true;
                own.excess -= 1;
                other.excess += 1;
                if other.excess == 1 {
                    self.activate(place);
                }
                if own.excess == 0 {
                    break;
                }
            }
            edge += 1;
        }
        self.vertices[vertex as usize].excess = own.excess;
        self.vertices[vertex as usize].current = edge - begin;
    }

    fn push_place(&mut self, vertex: u32, place: usize) {
        let mut own = self.vertices[vertex as usize];
        if own.label == 1 {
            let place = &mut self.places[place];
            let pushed = own.excess.min(place.capacity - place.flow);
            place.flow += pushed;
            own.excess -= pushed;
            self.arrived += pushed as usize;
            self.vertices[vertex as usize].excess = own.excess;
            return;
        }
        let begin = self.incident_begins[place];
        let end = self.incident_begins[place + 1];
        let mut at = begin + own.current;
        while at < end {
            let edge = self.incident[at as usize] as usize;
            let bucket = self.bucket_of[edge];
            let other = &mut self.vertices[bucket as usize];
            if self.is_used[edge] && other.label + 1 == own.label {
                self.is_used[edge] = false;
                own.excess -= 1;
                other.excess += 1;
                if other.excess == 1 {
                    self.activate(bucket);
                }
                if own.excess == 0 {
                    break;
                }
            }
            at += 1;
        }
        self.vertices[vertex as usize].excess = own.excess;
        self.vertices[vertex as usize].current = at - begin;
    }

    /// Gives a vertex with excess the lowest label with which it can push: `false` if there is none.
    fn relabel(&mut self, vertex: u32) -> bool {
        self.work += RELABEL_COST + self.degree(vertex);
        let old = self.vertices[vertex as usize].label;
        let (label, current) = match (vertex as usize).checked_sub(self.buckets) {
            None => self.label_of_bucket(vertex as usize),
            Some(place) => self.label_of_place(place),
        };
        self.remove(vertex);
        if self.layers[old as usize].first == NONE {
            self.cut_off(old);
            self.vertices[vertex as usize].label = self.unreachable();
            return false;
        }
        let unreachable = self.unreachable();
        let own = &mut self.vertices[vertex as usize];
        (own.label, own.current) = (label, current);
        if label >= unreachable {
            own.label = unreachable;
            return false;
        }
        self.enlist(vertex);
        true
    }

    /// The label that a bucket's arcs allow, and the first arc that does.
    fn label_of_bucket(&self, bucket: usize) -> (u32, u32) {
        let begin = self.begins[bucket] as usize;
        let edges = begin..self.begins[bucket + 1] as usize;
        let open = edges.filter(|edge| !self.is_used[*edge]);
        let label = |edge: usize| self.vertices[self.buckets + self.edge_place[edge] as usize].label + 1;
        let best = open.map(|edge| (label(edge), (edge - begin) as u32)).min_by_key(|(label, _)| *label);
        best.unwrap_or((u32::MAX, 0))
    }

    fn label_of_place(&self, place: usize) -> (u32, u32) {
        if self.places[place].flow < self.places[place].capacity {
            return (1, 0);
        }
        let begin = self.incident_begins[place] as usize;
        let edges = begin..self.incident_begins[place + 1] as usize;
        let open = edges.filter(|at| self.is_used[self.incident[*at] as usize]);
        let label = |at: usize| self.vertices[self.bucket_of[self.incident[at] as usize] as usize].label + 1;
        let best = open.map(|at| (label(at), (at - begin) as u32)).min_by_key(|(label, _)| *label);
        best.unwrap_or((u32::MAX, 0))
    }

    /// No vertex has this label any more: those above have no way to the sink. None of them is active, as the highest is discharged
    /// first.
    fn cut_off(&mut self, label: u32) {
        let unreachable = self.unreachable();
        for above in label + 1..=self.highest {
            let mut vertex = core::mem::replace(&mut self.layers[above as usize], EMPTY).first;
            while vertex != NONE {
                let own = &mut self.vertices[vertex as usize];
                own.label = unreachable;
                vertex = own.next;
            }
        }
        self.highest = label - 1;
    }
}
