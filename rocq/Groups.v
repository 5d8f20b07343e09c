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

(** ** One client's local steps, without noise *)

Section Walk.
Context {V : space}.
Variables (f : V -> R) (g : V -> V) (c : claim) (k : nat) (x xs : V).
Let eta := Q2R (client_lr c).

(** Its points before each local step; the optimum is the last. *)
Definition local_point (step : R) (b : nat) : V :=
  if (b <? k)%nat then local_sgd step (fun _ => g) b x else xs.

Lemma local_first step : (1 <= k)%nat -> local_point step 0 = x.
Proof. intros P. unfold local_point. destruct (Nat.ltb_spec 0 k); [reflexivity|lia]. Qed.

Lemma local_last step : local_point step k = xs.
Proof. unfold local_point. destruct (Nat.ltb_spec k k); [lia|reflexivity]. Qed.

Lemma local_moved step b v : (b <= k)%nat -> inner (minus (local_sgd step (fun _ => g) b x) x) v =
  - step * sum b (fun j => inner (g (local_point step j)) v).
Proof.
  induction b as [|b IH]; intros B; [cbn [local_sgd sum]; rewrite inner_minus; ring|].
  assert (H := IH ltac:(lia)). cbn [local_sgd sum]. rewrite !inner_minus, inner_scale.
  rewrite inner_minus in H. unfold local_point at 2. destruct (Nat.ltb_spec b k); [|lia]. lra.
Qed.

Lemma local_change step v : inner (minus (local_sgd step (fun _ => g) k x) x) v =
  - step * inner (total k (fun j => g (local_point step j))) v.
Proof. rewrite inner_total. now apply local_moved. Qed.

Lemma local_value slope l v bo bx : (1 <= k)%nat -> 0 < Q2R (smoothness c) ->
  Q2R (convexity c) < Q2R (smoothness c) ->
  interpolable (Q2R (smoothness c)) (Q2R (convexity c)) f g -> pairs_fit v k k l = true ->
  form (group c k l bo bx)
    (map (coordinate (minus x xs) slope (fun b => g (local_point eta b))) (seq 0 (k + 3))) <=
  Q2R bo * square (g xs) + Q2R bx * square (minus (g x) slope) - Q2R v * (f x - f xs).
Proof.
  intros P L M I fit.
  assert (W : forall b w, (b < k)%nat -> inner (minus (local_point eta b) xs) w =
    inner (minus x xs) w - eta * sum b (fun j => inner (g (local_point eta j)) w + inner zero w)).
  { intros b w B. rewrite (sum_ext b _ (fun j => inner (g (local_point eta j)) w))
      by (intros; rewrite inner_zero; ring).
    assert (H := local_moved eta b w ltac:(lia)). rewrite inner_minus in H. rewrite !inner_minus.
    unfold local_point at 1. destruct (Nat.ltb_spec b k); [|lia]. lra. }
  assert (H := group_value c k k x xs slope (local_point eta) (fun b => g (local_point eta b)) (fun _ => zero)
    (fun b => f (local_point eta b)) P (le_n k) L M
    (fun b b' _ _ => I (local_point eta b) (local_point eta b')) W
    ltac:(intros w; now rewrite local_last) (fun _ _ _ => same_refl zero) v l bo bx fit).
  unfold coordinates in H. rewrite form_beyond in H by
    (apply Forall_map, Forall_forall; intros; apply same_refl).
  now rewrite local_first, local_last in H.
Qed.

End Walk.
