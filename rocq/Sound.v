(** What the checker accepts is true. *)

From Coq Require Import Reals QArith Qreals List Lra Lia Arith Bool.
From fltheory Require Import Space Forms Round OneRound.
Import ListNotations.
Open Scope R_scope.

(** ** Lists of coordinates *)

Section Coordinates.
Context {V : space}.

Lemma lin_repeat a k n s (f : nat -> V) w : (k <= n)%nat ->
  inner (lin (repeat a k) (map f (seq s n))) w = Q2R a * sum k (fun i => inner (f (s + i)%nat) w).
Proof.
  revert n s. induction k as [|k IH]; intros n s L.
  - simpl. rewrite inner_zero. ring.
  - destruct n as [|n]; [lia|].
    replace (repeat a (S k)) with (a :: repeat a k) by reflexivity.
    change (map f (seq s (S n))) with (f s :: map f (seq (S s) n)). simpl lin.
    rewrite inner_add, inner_scale, IH by lia.
    assert (E : sum (S k) (fun i => inner (f (s + i)%nat) w) =
      inner (f s) w + sum k (fun i => inner (f (S s + i)%nat) w)); [|rewrite E; ring].
    clear. induction k as [|k IH].
    + simpl. rewrite Nat.add_0_r. ring.
    + change (sum (S (S k)) (fun i => inner (f (s + i)%nat) w))
        with (sum (S k) (fun i => inner (f (s + i)%nat) w) + inner (f (s + S k)%nat) w).
      rewrite IH. simpl sum. replace (s + S k)%nat with (S (s + k)) by lia. ring.
Qed.

Lemma nth_map_seq (f : nat -> V) n a : (a < n)%nat -> nth a (map f (seq 0 n)) zero = f a.
Proof.
  intros L. rewrite (nth_indep _ zero (f 0%nat)) by now rewrite map_length, seq_length.
  rewrite map_nth, seq_nth by assumption. reflexivity.
Qed.

Lemma lin_unit_seq (f : nat -> V) n a w : (a < n)%nat ->
  inner (lin (unit a) (map f (seq 0 n))) w = inner (f a) w.
Proof.
  intros L. rewrite lin_unit by (now rewrite map_length, seq_length).
  now rewrite nth_map_seq.
Qed.

Lemma Forall2_map (f g : nat -> V) l :
  (forall i, In i l -> same (f i) (g i)) -> Forall2 same (map f l) (map g l).
Proof.
  induction l as [|i l IH]; intros H; simpl; constructor.
  - apply H. now left.
  - apply IH. intros j I. apply H. now right.
Qed.

End Coordinates.

(** ** One inequality *)

Lemma Q2R_Qred a : Q2R (Qred a) = Q2R a.
Proof. apply Qeq_eqR, Qred_correct. Qed.

Lemma Q2R_nonzero a : Q2R a <> 0 -> ~ (a == 0)%Q.
Proof. intros H E. apply H. rewrite (Qeq_eqR _ _ E). apply Q2R_0. Qed.

Lemma condition_of_value {V : space} (L mu : Q) (at_b apart steeper : linear) (vs : list V)
    (g v s : V) :
  0 < Q2R L -> Q2R mu < Q2R L -> same (lin at_b vs) g -> same (lin apart vs) v ->
  same (lin steeper vs) s ->
  form (condition_of L mu at_b apart steeper) vs =
  inner g v + (square s / Q2R L + Q2R mu * square v - 2 * (Q2R mu / Q2R L) * inner s v)
    / (2 * (1 - Q2R mu / Q2R L)).
Proof.
  intros smooth convex G P S.
  assert (below : 1 - Q2R mu / Q2R L > 0).
  { replace (1 - Q2R mu / Q2R L) with ((Q2R L - Q2R mu) / Q2R L) by (field; lra).
    apply Rdiv_lt_0_compat; lra. }
  assert (N : ~ (L == 0)%Q) by (apply Q2R_nonzero; lra).
  assert (M : Q2R (mu / L) = Q2R mu / Q2R L) by now rewrite Q2R_div.
  unfold condition_of.
  rewrite form_qadd, form_qscale, !form_qadd, !form_qscale, !form_product, !form_both,
    !Q2R_Qred.
  rewrite (same_inner _ _ _ _ G P), (same_inner _ _ _ _ S S), (same_inner _ _ _ _ P P),
    (same_inner _ _ _ _ S P).
  assert (E1 : Q2R (1 / L) = / Q2R L) by (rewrite Q2R_div, Q2R_1 by exact N; field; lra).
  assert (E2 : Q2R (1 / (2 * (1 - mu / L))) = / (2 * (1 - Q2R mu / Q2R L))).
  { assert (D : Q2R (2 * (1 - mu / L)) = 2 * (1 - Q2R mu / Q2R L)).
    { rewrite Q2R_mult, Q2R_minus, M, Q2R_1. unfold Q2R at 1. simpl. lra. }
    rewrite Q2R_div; [rewrite D, Q2R_1; field; split; lra|].
    apply Q2R_nonzero. rewrite D. lra. }
  assert (E3 : Q2R (-2 * (mu / L)) = -2 * (Q2R mu / Q2R L)).
  { rewrite Q2R_mult, M. unfold Q2R at 1. simpl. lra. }
  rewrite E1, E2, E3. unfold square, Rdiv. ring.
Qed.

(** ** One client *)

(** A difference from the optimum, the gradient of F, and a client's own gradients. *)
Definition coordinate {V : space} (z slope : V) (grad : nat -> V) (j : nat) : V :=
  match j with
  | O => z
  | S O => slope
  | S (S a) => grad a
  end.

Section Client.
Context {V : space}.
(** Its points before each local step and the optimum, its gradients and losses there, the noise. *)
Variables (c : claim) (k top : nat) (x xs slope : V) (place grad error : nat -> V) (loss : nat -> R).
Hypothesis k_positive : (0 < k)%nat.
Hypothesis top_below : (top <= k)%nat.
Hypothesis smooth : 0 < Q2R (smoothness c).
Hypothesis convex : Q2R (convexity c) < Q2R (smoothness c).
Hypothesis interpolated : forall a b, (a <= top)%nat -> (b <= top)%nat ->
  let (L, mu) := (Q2R (smoothness c), Q2R (convexity c)) in
  loss b + inner (grad b) (minus (place a) (place b))
    + (square (minus (grad a) (grad b)) / L + mu * square (minus (place a) (place b))
       - 2 * (mu / L) * inner (minus (grad a) (grad b)) (minus (place a) (place b)))
      / (2 * (1 - mu / L))
  <= loss a.

Let step := Q2R (client_lr c).

Hypothesis walked : forall a w, (a < k)%nat -> inner (minus (place a) xs) w =
  inner (minus x xs) w - step * sum a (fun b => inner (grad b) w + inner (error b) w).
Hypothesis arrived : same (place k) xs.
Hypothesis quiet : noisy c = false -> forall b, (b < k)%nat -> same (error b) zero.

Definition coordinates : list V :=
  map (coordinate (minus x xs) slope grad) (seq 0 (k + 3)) ++ map error (seq 0 (k - 1)).

Lemma lin_gradient a w : (a <= k)%nat -> inner (lin (gradient a) coordinates) w = inner (grad a) w.
Proof.
  intros L. unfold gradient, coordinates. rewrite lin_beyond.
  - now rewrite lin_unit_seq by lia.
  - unfold unit, zeros. rewrite app_length, repeat_length, map_length, seq_length. simpl. lia.
Qed.

Lemma lin_point a w : (a <= k)%nat ->
  inner (lin (point c k a) coordinates) w = inner (minus (place a) xs) w.
Proof.
  intros L. unfold point. destruct (Nat.ltb_spec a k) as [H|H].
  - assert (E : inner (lin (1%Q :: 0%Q :: repeat (- client_lr c)%Q a)
        (map (coordinate (minus x xs) slope grad) (seq 0 (k + 3)))) w =
      inner (minus x xs) w - step * sum a (fun b => inner (grad b) w)).
    { replace (k + 3)%nat with (S (S (S k))) by lia.
      change (seq 0 (S (S (S k)))) with (0 :: 1 :: seq 2 (S k))%nat. cbn [map lin].
      rewrite !inner_add, !inner_scale, lin_repeat by lia.
      rewrite Q2R_0, Q2R_1, Q2R_opp. fold step. cbn [coordinate Nat.add]. ring. }
    rewrite walked, sum_add by exact H. unfold coordinates. destruct (noisy c) eqn:N.
    + rewrite lin_padded, E, lin_repeat, Q2R_opp by
        (try lia; rewrite map_length, seq_length; cbn [length]; rewrite repeat_length; lia).
      fold step. cbn [Nat.add]. ring.
    + rewrite app_nil_r, lin_beyond, E by
        (simpl; rewrite repeat_length, map_length, seq_length; lia).
      rewrite (sum_ext a (fun b => inner (error b) w) (fun _ => 0)), sum_const; [ring|].
      intros b B. rewrite (quiet eq_refl b) by lia. apply inner_zero.
  - replace a with k by lia. rewrite lin_nil, inner_minus, (arrived w). ring.
Qed.

Lemma lin_apart_points a b w : (a <= k)%nat -> (b <= k)%nat ->
  inner (lin (lminus (point c k a) (point c k b)) coordinates) w = inner (minus (place a) (place b)) w.
Proof.
  intros A B. rewrite lin_lminus, !lin_point, !inner_minus by assumption. ring.
Qed.

Lemma lin_steeper a b w : (a <= k)%nat -> (b <= k)%nat ->
  inner (lin (lminus (gradient a) (gradient b)) coordinates) w = inner (minus (grad a) (grad b)) w.
Proof.
  intros A B. rewrite lin_lminus, !lin_gradient, inner_minus by assumption. reflexivity.
Qed.

Lemma condition_value a b : (a <= top)%nat -> (b <= top)%nat ->
  form (condition c k a b) coordinates <= loss a - loss b.
Proof.
  intros A' B'. assert (A : (a <= k)%nat) by lia. assert (B : (b <= k)%nat) by lia.
  assert (I := interpolated a b A' B'). cbv zeta beta iota in I. unfold condition.
  rewrite (condition_of_value _ _ _ _ _ _ _ _ _ smooth convex (fun w => lin_gradient b w B)
    (fun w => lin_apart_points a b w A B) (fun w => lin_steeper a b w A B)). lra.
Qed.

(** *** Function values cancel, but for what is claimed of them *)

Definition line : space.
Proof.
  refine (Space R 0 Rplus Rmult Rmult _ _ _ _ _); intros; try ring. nra.
Defined.

Definition values : list line := map loss (seq 0 (S k)).

Lemma lin_value a : (a <= k)%nat -> inner (s := line) (lin (V := line) (unit a) values) 1 = loss a.
Proof.
  intros L. unfold values. rewrite (lin_unit_seq (V := line)) by lia. simpl. ring.
Qed.

Lemma conditions_value v l : pairs_fit v top k l = true ->
  form (conditions c k l) coordinates <= - (Q2R v * (loss 0 - loss k)).
Proof.
  unfold pairs_fit. intros E. apply andb_prop in E. destruct E as [E Z].
  assert (H : form (conditions c k l) coordinates <=
    - inner (s := line) (lin (V := line) (remaining l) values) 1).
  { clear Z. unfold conditions, remaining. induction l as [|[[a b] u] l IH]; simpl in *.
    - unfold form. rewrite bil_nil. lra.
    - apply andb_prop in E. destruct E as [E R].
      apply andb_prop in E. destruct E as [E B]. apply andb_prop in E. destruct E as [P A].
      apply Nat.leb_le in A. apply Nat.leb_le in B.
      assert (Pos : 0 <= Q2R u) by (rewrite <- Q2R_0; apply Qle_Rle; now apply Qle_bool_iff).
      assert (C := condition_value a b A B).
      change (qadd (qscale u (condition c k a b)) _)
        with (qadd (qscale u (condition c k a b))
          (qsum (map (fun p => qscale (snd p) (condition c k (fst (fst p)) (snd (fst p)))) l))).
      rewrite form_qadd, form_qscale.
      assert (W := lin_ladd (V := line) (lscale u (lminus (unit b) (unit a)))
        (fold_right ladd []
          (map (fun p => lscale (snd p) (lminus (unit (snd (fst p))) (unit (fst (fst p))))) l))
        values 1).
      rewrite lin_lscale, lin_lminus, !lin_value in W by lia.
      specialize (IH R). simpl in W, IH |- *. rewrite W. nra. }
  assert (T := lin_is_zero (V := line) _ values 1 Z).
  rewrite lin_lminus, lin_lscale, lin_lminus, !lin_value in T by lia. lra.
Qed.

(** *** The group's form *)

Lemma group_value v l bo bx : pairs_fit v top k l = true ->
  form (group c k l bo bx) coordinates <=
  Q2R bo * square (grad k) + Q2R bx * square (minus (grad 0) slope)
  - Q2R v * (loss 0 - loss k).
Proof.
  intros P. unfold group. rewrite !form_qadd, !form_qscale, !form_product.
  assert (H := conditions_value v l P).
  rewrite (same_inner (lin (gradient k) coordinates) (grad k) (lin (gradient k) coordinates) (grad k))
    by (intros w; now rewrite lin_gradient by lia).
  assert (S : same (lin (lminus (gradient 0) (unit 1)) coordinates) (minus (grad 0) slope)).
  { intros w. rewrite lin_lminus, lin_gradient, inner_minus by lia. f_equal.
    unfold coordinates. rewrite lin_beyond, lin_unit_seq by
      (try (rewrite map_length, seq_length; simpl); lia).
    reflexivity. }
  rewrite (same_inner _ _ _ _ S S). unfold square. lra.
Qed.

End Client.
