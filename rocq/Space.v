(** Real inner product spaces, finite sums, and means over clients.

No two vectors are ever said to be equal: all that is used of them are inner products. *)

From Coq Require Import Reals Lra Lia Arith.
Open Scope R_scope.

Record space := Space {
  vector :> Type;
  zero : vector;
  add : vector -> vector -> vector;
  scale : R -> vector -> vector;
  inner : vector -> vector -> R;
  inner_sym : forall u v, inner u v = inner v u;
  inner_zero : forall w, inner zero w = 0;
  inner_add : forall u v w, inner (add u v) w = inner u w + inner v w;
  inner_scale : forall a v w, inner (scale a v) w = a * inner v w;
  inner_square : forall v, 0 <= inner v v
}.

Arguments zero {s}.
Arguments add {s}.
Arguments scale {s}.
Arguments inner {s}.

Definition minus {V : space} (u v : V) : V := add u (scale (-1) v).
Definition square {V : space} (v : V) : R := inner v v.

(** Vectors that no inner product tells apart. *)
Definition same {V : space} (u v : V) : Prop := forall w, inner u w = inner v w.

Fixpoint sum (n : nat) (f : nat -> R) : R :=
  match n with O => 0 | S k => sum k f + f k end.

Fixpoint total {V : space} (n : nat) (f : nat -> V) : V :=
  match n with O => zero | S k => add (total k f) (f k) end.

Definition average (n : nat) (f : nat -> R) : R := / INR n * sum n f.
Definition mean {V : space} (n : nat) (f : nat -> V) : V := scale (/ INR n) (total n f).

(** ** Sums *)

Lemma sum_ext n f g : (forall i, (i < n)%nat -> f i = g i) -> sum n f = sum n g.
Proof. induction n; simpl; intros H; [reflexivity|]. rewrite IHn, (H n); auto. Qed.

Lemma sum_add n f g : sum n (fun i => f i + g i) = sum n f + sum n g.
Proof. induction n; simpl; [lra|]. rewrite IHn. lra. Qed.

Lemma sum_scale n a f : sum n (fun i => a * f i) = a * sum n f.
Proof. induction n; simpl; [lra|]. rewrite IHn. lra. Qed.

Lemma sum_const n a : sum n (fun _ => a) = INR n * a.
Proof. induction n; [simpl; lra|]. rewrite S_INR. simpl sum. rewrite IHn. lra. Qed.

Lemma sum_le n f g : (forall i, (i < n)%nat -> f i <= g i) -> sum n f <= sum n g.
Proof. induction n; simpl; intros H; [lra|]. apply Rplus_le_compat; auto. Qed.

Lemma sum_swap n m (f : nat -> nat -> R) :
  sum n (fun i => sum m (fun j => f i j)) = sum m (fun j => sum n (fun i => f i j)).
Proof.
  induction n; simpl; [rewrite sum_const; ring|].
  now rewrite IHn, <- sum_add.
Qed.

Lemma sum_delta n (f : nat -> R) j : (j < n)%nat ->
  sum n (fun i => if Nat.eqb i j then f i else 0) = f j.
Proof.
  induction n; simpl; intros H; [lia|].
  destruct (Nat.eq_dec n j) as [->|N].
  - rewrite Nat.eqb_refl.
    assert (sum j (fun i => if Nat.eqb i j then f i else 0) = 0) as ->; [|lra].
    rewrite (sum_ext _ _ (fun _ => 0)); [rewrite sum_const; ring|].
    intros i L. destruct (Nat.eqb_spec i j); [lia|reflexivity].
  - rewrite IHn by lia. destruct (Nat.eqb_spec n j); [congruence|lra].
Qed.

(** ** Vectors *)

Section Vectors.
Context {V : space}.

Lemma inner_add_r (u v w : V) : inner w (add u v) = inner w u + inner w v.
Proof. rewrite !(inner_sym V w). apply inner_add. Qed.

Lemma inner_scale_r a (v w : V) : inner w (scale a v) = a * inner w v.
Proof. rewrite !(inner_sym V w). apply inner_scale. Qed.

Lemma inner_zero_r (w : V) : inner w zero = 0.
Proof. rewrite inner_sym. apply inner_zero. Qed.

Lemma inner_minus (u v w : V) : inner (minus u v) w = inner u w - inner v w.
Proof. unfold minus. rewrite inner_add, inner_scale. ring. Qed.

Lemma inner_minus_r (u v w : V) : inner w (minus u v) = inner w u - inner w v.
Proof. rewrite !(inner_sym V w). apply inner_minus. Qed.

Lemma inner_total n (f : nat -> V) w : inner (total n f) w = sum n (fun i => inner (f i) w).
Proof. induction n; simpl; [apply inner_zero|]. now rewrite inner_add, IHn. Qed.

Lemma inner_total_r n (f : nat -> V) w : inner w (total n f) = sum n (fun i => inner w (f i)).
Proof.
  rewrite inner_sym, inner_total. apply sum_ext. intros. apply inner_sym.
Qed.

Lemma inner_mean n (f : nat -> V) w : inner (mean n f) w = average n (fun i => inner (f i) w).
Proof. unfold mean, average. now rewrite inner_scale, inner_total. Qed.

Lemma same_refl (u : V) : same u u.
Proof. intros w. reflexivity. Qed.

Lemma same_inner (u u' v v' : V) : same u u' -> same v v' -> inner u v = inner u' v'.
Proof. intros A B. rewrite A, (inner_sym V u'), B. apply inner_sym. Qed.

Lemma square_nonneg (v : V) : 0 <= square v.
Proof. apply inner_square. Qed.

(** What differs from the means, client by client. *)
Definition apart (n : nat) (f : nat -> V) (i : nat) : V := minus (f i) (mean n f).

(** The inner products of two families: of their means, and of what differs from these. *)
Lemma average_inner n (f g : nat -> V) : (0 < n)%nat ->
  average n (fun i => inner (f i) (g i)) =
  inner (mean n f) (mean n g) + average n (fun i => inner (apart n f i) (apart n g i)).
Proof.
  intros P. assert (INR n <> 0) by (apply not_0_INR; lia).
  unfold average at 2.
  rewrite (sum_ext n (fun i => inner (apart n f i) (apart n g i))
    (fun i => inner (f i) (g i) + (- inner (f i) (mean n g) +
      (- inner (mean n f) (g i) + inner (mean n f) (mean n g))))).
  2: { intros i _. unfold apart. rewrite inner_minus, !inner_minus_r. ring. }
  rewrite !sum_add, sum_const.
  rewrite (sum_ext n (fun i => - inner (f i) (mean n g)) (fun i => (-1) * inner (f i) (mean n g)))
    by (intros; ring).
  rewrite (sum_ext n (fun i => - inner (mean n f) (g i)) (fun i => (-1) * inner (mean n f) (g i)))
    by (intros; ring).
  rewrite !sum_scale, <- inner_total, <- inner_total_r.
  assert (T : forall w, inner (total n f) w = INR n * inner (mean n f) w)
    by (intros; unfold mean; rewrite inner_scale; field; assumption).
  assert (T' : forall w, inner w (total n g) = INR n * inner w (mean n g))
    by (intros; unfold mean; rewrite inner_scale_r; field; assumption).
  rewrite T, T'. unfold average. field. assumption.
Qed.

End Vectors.

Lemma average_ext n f g : (forall i, (i < n)%nat -> f i = g i) -> average n f = average n g.
Proof. intros H. unfold average. f_equal. now apply sum_ext. Qed.

Lemma average_add n f g : average n (fun i => f i + g i) = average n f + average n g.
Proof. unfold average. rewrite sum_add. ring. Qed.

Lemma average_scale n a f : average n (fun i => a * f i) = a * average n f.
Proof. unfold average. rewrite sum_scale. ring. Qed.

Lemma average_const n a : (0 < n)%nat -> average n (fun _ => a) = a.
Proof.
  intros P. unfold average. rewrite sum_const. field. apply not_0_INR. lia.
Qed.

Lemma average_le n f a : (forall i, (i < n)%nat -> f i <= a) -> 0 <= a -> average n f <= a.
Proof.
  intros H A. destruct n as [|n]; [unfold average; simpl; lra|].
  apply Rle_trans with (average (S n) (fun _ => a)); [|rewrite average_const by lia; lra].
  unfold average. apply Rmult_le_compat_l.
  - left. apply Rinv_0_lt_compat, lt_0_INR. lia.
  - now apply sum_le.
Qed.

Lemma average_nonneg n f : (forall i, (i < n)%nat -> 0 <= f i) -> 0 <= average n f.
Proof.
  intros H. destruct n as [|n]; [unfold average; simpl; lra|].
  unfold average. apply Rmult_le_pos.
  - left. apply Rinv_0_lt_compat, lt_0_INR. lia.
  - replace 0 with (sum (S n) (fun _ => 0)) by (rewrite sum_const; ring). now apply sum_le.
Qed.
