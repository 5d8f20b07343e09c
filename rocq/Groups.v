(** Clients together: the slack is a form in their means, and one in what they differ in. *)

From Coq Require Import Reals QArith Qreals List Lra Lia Arith Bool.
From fltheory Require Import Space Forms Round OneRound Sound.
Import ListNotations.
Open Scope R_scope.

Section Constant.
Context {V : space}.

Lemma mean_constant n (v : V) : (0 < n)%nat -> same (mean n (fun _ => v)) v.
Proof. intros P w. rewrite inner_mean. now apply average_const. Qed.

Lemma apart_constant n (v : V) i : (0 < n)%nat -> same (apart n (fun _ => v) i) zero.
Proof.
  intros P w. unfold apart. rewrite inner_minus, (mean_constant n v P), inner_zero. ring.
Qed.

End Constant.

(** ** One group *)

Section Group.
Context {V : space}.
Variables (n k : nat) (z slope : V) (own : nat -> nat -> V).
Hypothesis some : (0 < n)%nat.

Let coord (i j : nat) : V := coordinate z slope (own i) j.

Definition differing (i : nat) : list V :=
  map (fun a => apart n (fun i => own i a) i) (seq 0 (S k)).

Lemma group_split A T (means : list V) :
  Forall2 same (map (fun t => lin t means) T)
    (map (fun j => mean n (fun i => coord i j)) (seq 0 (k + 3))) ->
  average n (fun i => form A (map (coord i) (seq 0 (k + 3)))) =
  form (substituted A T) means
  + average n (fun i => form (substituted A (differences k)) (differing i)).
Proof.
  intros H. rewrite (average_form n coord A) by assumption.
  rewrite form_substituted, (form_same A _ _ H). f_equal.
  apply average_ext. intros i _. rewrite form_substituted. symmetry. apply form_same.
  unfold differences. replace (k + 3)%nat with (S (S (S k))) by lia.
  change (seq 0 (S (S (S k)))) with (0 :: 1 :: seq 2 (S k))%nat. cbn [map].
  constructor; [|constructor].
  - intros w. rewrite lin_nil. symmetry.
    exact (eq_trans (apart_constant n z i some w) (inner_zero V w)).
  - intros w. rewrite lin_nil. symmetry.
    exact (eq_trans (apart_constant n slope i some w) (inner_zero V w)).
  - rewrite map_map, <- (seq_shift (S k) 1), <- (seq_shift (S k) 0), !map_map.
    apply Forall2_map. intros a I w. apply in_seq in I.
    unfold differing. rewrite lin_unit_seq by lia. reflexivity.
Qed.

End Group.
