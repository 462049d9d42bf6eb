//! Which slots are in use. A bitmap in memory, rebuilt from the metadata pages when the disk is opened.

/// Hands out slots, or page places: anything numbered from 0.
#[derive(Debug)]
pub(crate) struct Allocator {
    words: Vec<u64>,
    count: u32,
    free: u32,
    reserved: u32,
    /// No number below this one is free.
    hint: u32,
}

impl Allocator {
    /// `count` free numbers.
    pub(crate) fn new(count: u32) -> Allocator {
        Allocator { words: vec![0; count.div_ceil(64) as usize], count, free: count, reserved: 0, hint: 0 }
    }

    /// How many there are.
    pub(crate) fn count(&self) -> u32 {
        self.count
    }

    /// How many are in use.
    pub(crate) fn used(&self) -> u32 {
        self.count - self.free
    }

    /// How many are not in use.
    pub(crate) fn unused(&self) -> u32 {
        self.free
    }

    /// How many of a hundred are in use.
    pub(crate) fn used_percent(&self) -> u8 {
        (u64::from(self.used()) * 100 / u64::from(self.count.max(1))) as u8
    }

    /// How many are set aside.
    pub(crate) fn reserved(&self) -> u32 {
        self.reserved
    }

    /// How many are neither in use nor reserved.
    pub(crate) fn available(&self) -> u32 {
        self.free.saturating_sub(self.reserved)
    }

    /// Sets `count` aside, so that later allocations cannot fail.
    pub(crate) fn reserve(&mut self, count: u32) {
        self.reserved += count;
    }

    /// Gives back what was set aside.
    pub(crate) fn release(&mut self, count: u32) {
        assert!(count <= self.reserved, "release of {count} of {} reserved", self.reserved);
        self.reserved -= count;
    }

    /// The lowest free number.
    pub(crate) fn allocate(&mut self) -> Option<u32> {
        let mut word = (self.hint / 64) as usize;
        while *self.words.get(word)? == u64::MAX {
            word += 1;
        }
        let number = word as u32 * 64 + self.words[word].trailing_ones();
        if number >= self.count {
            return None;
        }
        self.mark(number);
        self.hint = number + 1;
        Some(number)
    }

    /// The numbers that would be allocated next, if none were given back.
    pub(crate) fn next_free(&self, count: usize) -> impl Iterator<Item = u32> {
        let words = self.words.iter().enumerate().skip((self.hint / 64) as usize);
        let numbers = words.filter(|(_, word)| **word != u64::MAX).flat_map(|(at, &word)| {
            (0..64).filter(move |bit| word & 1 << bit == 0).map(move |bit| at as u32 * 64 + bit)
        });
        numbers.filter(|&number| number < self.count).take(count)
    }

    /// Takes `number`; false when it was in use, or does not exist.
    pub(crate) fn mark(&mut self, number: u32) -> bool {
        if number >= self.count || self.is_used(number) {
            return false;
        }
        self.words[(number / 64) as usize] |= 1 << (number % 64);
        self.free -= 1;
        true
    }

    /// Gives `number` back.
    pub(crate) fn free(&mut self, number: u32) {
        assert!(self.is_used(number), "free of number {number}, which is not in use");
        self.words[(number / 64) as usize] &= !(1 << (number % 64));
        self.free += 1;
        self.hint = self.hint.min(number);
    }

    /// Whether `number` is in use.
    pub(crate) fn is_used(&self, number: u32) -> bool {
        number < self.count && self.words[(number / 64) as usize] & 1 << (number % 64) != 0
    }

    /// Whether the same numbers are in use.
    pub(crate) fn is_same(&self, other: &Allocator) -> bool {
        self.words == other.words
    }

    /// Asserts that the count is the bitmap's.
    pub(crate) fn check(&self) {
        let used: u32 = self.words.iter().map(|word| word.count_ones()).sum();
        assert_eq!(used, self.used(), "the count of used numbers is not the bitmap's");
        assert!(self.reserved <= self.free, "{} reserved of {} free", self.reserved, self.free);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gives_each_number_once() {
        let mut slots = Allocator::new(70);
        assert!(slots.mark(3) && !slots.mark(3) && !slots.mark(70));
        let given: Vec<u32> = core::iter::from_fn(|| slots.allocate()).collect();
        assert_eq!(given, (0..70).filter(|&n| n != 3).collect::<Vec<_>>());
        slots.free(65);
        slots.free(2);
        assert_eq!(slots.next_free(1).collect::<Vec<_>>(), [2]);
        assert_eq!(slots.next_free(9).collect::<Vec<_>>(), [2, 65]);
        assert_eq!((slots.allocate(), slots.allocate(), slots.allocate()), (Some(2), Some(65), None));
        slots.check();
    }
}
