//! What a brick holds of the views of its groups ([`Groups`]) and of the families of its volumes ([`Families`]): the brick's
//! roles and its participants go by both.

mod families;
mod groups;

pub use families::Families;
pub use groups::Groups;
