(** FedAU's online weights (Wang and Ji 2024, Algorithm 2) of one client that takes part in each
    round independently: nothing here is about proofs. *)

From Coq Require Import Reals List Arith.
From fltheory Require Import Round Process.
Import ListNotations.
Open Scope R_scope.

(** A weight [omega], the mean of the lengths of the intervals between rounds that the client takes
    part in; how many of them have ended; and how old the open one is. *)
Record interval_mean := { omega : R; ended : nat; age : nat }.

(** An interval ends when the client takes part, or when it is as long as the cut-off. *)
Definition updated (cutoff : nat) (w : interval_mean) (there : bool) : interval_mean :=
  if (there || Nat.eqb (S (age w)) cutoff)%bool
  then {| omega := (INR (ended w) * omega w + INR (S (age w))) / INR (S (ended w));
          ended := S (ended w); age := 0 |}
  else {| omega := omega w; ended := ended w; age := S (age w) |}.

Definition takes_part (p : R) : law bool := [(p, true); (1 - p, false)].

(** The weight after [t] rounds; it is 1 before the first interval has ended. *)
Fixpoint weights (p : R) (cutoff t : nat) : law interval_mean :=
  match t with
  | O => sure {| omega := 1; ended := 0; age := 0 |}
  | S r => bind (weights p cutoff r) (fun w =>
      bind (takes_part p) (fun there => sure (updated cutoff w there)))
  end.

(** The expected square of its error, relative to 1/p. *)
Definition weight_error (p : R) (cutoff t : nat) : R :=
  expectation (weights p cutoff t) (fun w => (p * omega w - 1) ^ 2).

(** The length of an interval, and the line of Theorem 3's proof that bounds the error. *)
Definition interval_length (p : R) (cutoff : nat) : law R :=
  map (fun k => (p * (1 - p) ^ k, INR (S k))) (seq 0 (pred cutoff))
  ++ [((1 - p) ^ pred cutoff, INR cutoff)].
Definition variance (l : law R) : R :=
  expectation l (fun x => x ^ 2) - expectation l (fun x => x) ^ 2.
Definition proof_line (p : R) (cutoff t : nat) : R :=
  p ^ 2 * variance (interval_length p cutoff) / INR (Nat.max (t / cutoff) 1)
  + (1 - p) ^ (2 * cutoff).
