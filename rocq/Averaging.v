(** A round of weighted averaging: clients in groups that are alike, whose updates have random
    weights. A checker of certificates, and the proof that what it accepts is true. *)

From Coq Require Import Reals QArith Qreals List Lra Lia Arith Bool.
From fltheory Require Import Space Forms Round OneRound Sound Groups Draw Noise Bound.
Import ListNotations.
Open Scope R_scope.

(** ** The expected square after a round *)

Section Weights.
Context {V : space}.
Variables (l : law (nat -> nat -> R)) (sizes : list nat) (mean second : list R).
Variables (product : list (list R)) (v : nat -> nat -> V).
Hypothesis random : random_weights l sizes mean second product.

Let C := length sizes.
Let n c := nth c sizes 0%nat.
Let both c e := nth e (nth c product nil) 0.
Let u (w : nat -> nat -> R) : V := total C (fun c => total (n c) (fun i => scale (w c i) (v c i))).

Lemma inner_weighted w y :
  inner (u w) y = sum C (fun c => sum (n c) (fun i => w c i * inner (v c i) y)).
Proof.
  unfold u. rewrite inner_total. apply sum_ext. intros c _. rewrite inner_total.
  apply sum_ext. intros i _. now rewrite inner_scale.
Qed.

Lemma expected_weighted y : expectation l (fun w => inner (u w) y) =
  sum C (fun c => nth c mean 0 * inner (total (n c) (v c)) y).
Proof.
  rewrite (expectation_ext l _ (fun w => sum C (fun c => sum (n c) (fun i => inner (v c i) y * w c i)))).
  - rewrite expectation_sum. apply sum_ext. intros c _. rewrite expectation_sum, inner_total, <- sum_scale.
    apply sum_ext. intros i I. rewrite expectation_scale, (of_mean _ _ _ _ _ random c i I). ring.
  - intros p _. rewrite inner_weighted. apply sum_ext. intros c _. apply sum_ext. intros. ring.
Qed.

Lemma expected_weighted_square : expectation l (fun w => square (u w)) =
  sum C (fun c => sum C (fun e => both c e * inner (total (n c) (v c)) (total (n e) (v e))))
  + sum C (fun c => (nth c second 0 - both c c) * sum (n c) (fun i => square (v c i))).
Proof.
  rewrite (expectation_ext l _ (fun w => sum C (fun c => sum (n c) (fun i =>
    sum C (fun e => sum (n e) (fun j => inner (v c i) (v e j) * (w c i * w e j))))))).
  2: { intros p _. unfold square. rewrite inner_weighted. apply sum_ext. intros c _.
       apply sum_ext. intros i _. rewrite inner_sym, inner_weighted, <- sum_scale.
       apply sum_ext. intros e _. rewrite <- sum_scale. apply sum_ext. intros j _.
       rewrite (inner_sym V (v e j)). ring. }
  rewrite expectation_sum, <- sum_add. apply sum_ext. intros c Lc.
  rewrite expectation_sum.
  rewrite (sum_ext (n c) _ (fun i => sum C (fun e => both c e * inner (v c i) (total (n e) (v e)))
    + (nth c second 0 - both c c) * square (v c i))).
  - rewrite sum_add, sum_scale. f_equal. rewrite sum_swap. apply sum_ext. intros e _.
    now rewrite sum_scale, <- inner_total.
  - intros i I. rewrite expectation_sum.
    rewrite (sum_ext C _ (fun e => both c e * inner (v c i) (total (n e) (v e))
      + (if Nat.eqb e c then (nth c second 0 - both c c) * square (v c i) else 0))).
    + rewrite sum_add. f_equal.
      exact (sum_delta C (fun _ => (nth c second 0 - both c c) * square (v c i)) c Lc).
    + intros e _. rewrite expectation_sum.
      rewrite (sum_ext (n e) _ (fun j => both c e * inner (v c i) (v e j)
        + (if Nat.eqb e c then if Nat.eqb j i then (nth c second 0 - both c c) * square (v c i) else 0
           else 0))).
      * rewrite sum_add, sum_scale, <- inner_total_r. f_equal. destruct (Nat.eqb_spec e c) as [->|N].
        -- exact (sum_delta (n c) (fun _ => (nth c second 0 - both c c) * square (v c i)) i I).
        -- rewrite sum_const. ring.
      * intros j J. rewrite expectation_scale.
        destruct (Nat.eqb_spec e c) as [->|N]; [destruct (Nat.eqb_spec j i) as [->|D]|].
        -- rewrite (of_second _ _ _ _ _ random c i I). fold (both c c). unfold square. ring.
        -- rewrite (of_product _ _ _ _ _ random c i c j I J) by congruence. fold (both c c). ring.
        -- rewrite (of_product _ _ _ _ _ random c i e j I J) by congruence. fold (both c e). ring.
Qed.

Theorem expected_average_square (x xs : V) (lr : R) :
  expectation l (fun w => square (minus (add x (scale lr (u w))) xs)) =
  square (minus x xs)
  + 2 * lr * sum C (fun c => nth c mean 0 * inner (total (n c) (v c)) (minus x xs))
  + lr * lr * (sum C (fun c => sum C (fun e =>
        both c e * inner (total (n c) (v c)) (total (n e) (v e))))
      + sum C (fun c => (nth c second 0 - both c c) * sum (n c) (fun i => square (v c i)))).
Proof.
  rewrite <- expected_weighted, <- expected_weighted_square.
  rewrite (expectation_ext l _ (fun w => square (minus x xs) * 1
    + (2 * lr * inner (u w) (minus x xs) + lr * lr * square (u w)))).
  - rewrite !expectation_add, !expectation_scale, (of_law _ _ _ _ _ random). ring.
  - intros p _. unfold square.
    repeat (rewrite ?inner_minus, ?inner_minus_r, ?inner_add, ?inner_add_r, ?inner_scale,
      ?inner_scale_r).
    rewrite (inner_sym V x (u _)), (inner_sym V xs (u _)), (inner_sym V xs x). ring.
Qed.

End Weights.

(** ** What is claimed *)

Record averaging := Averaging {
  sizes : list nat;
  shares : list Q;  (* of each client of a group, in F *)
  mean_weights : list Q;
  square_weights : list Q;
  product_weights : list (list Q);
  the_round : claim
}.

(** A group's conditions, budgets and squares; the budgets of the dissimilarity at x* and at x. *)
Record averaging_certificate := AveragingCertificate {
  pairs_of_groups : list pairs;
  budgets_at_optimum : list Q;
  budgets_at_x : list Q;
  squares_of_means : squares;
  squares_of_groups : list squares
}.

Definition number (a : averaging) (c : nat) : Q := inject_Z (Z.of_nat (nth c (sizes a) 0%nat)).
(** A group's share in F. *)
Definition part (a : averaging) (c : nat) : Q := Qred (nth c (shares a) 0%Q * number a c).
Definition product_weight (a : averaging) (c e : nat) : Q := nth e (nth c (product_weights a) []) 0%Q.

Fixpoint lsum (m : nat) (f : nat -> linear) : linear :=
  match m with O => [] | S k => ladd (lsum k f) (f k) end.
Fixpoint qsums (m : nat) (f : nat -> quadratic) : quadratic :=
  match m with O => [] | S k => qadd (qsums k f) (f k) end.
Fixpoint sumQ (m : nat) (f : nat -> Q) : Q :=
  match m with O => 0%Q | S k => plus (sumQ k f) (f k) end.

(** The means over group [c] of the gradients at its points, x* last: after x - x*. *)
Definition place_of (k c b : nat) : nat := S (c * S k + b).

Definition slope_form (a : averaging) : linear :=
  lsum (length (sizes a)) (fun c => lscale (part a c) (unit (place_of (local_steps (the_round a)) c 0))).

(** The gradients at x* sum to zero: those of the first group are what the others leave. *)
Definition optimum_form (a : averaging) (c : nat) : linear :=
  let k := local_steps (the_round a) in
  match c with
  | O => lscale (Qred (-1 / part a 0))
           (lsum (length (sizes a) - 1) (fun e => lscale (part a (S e)) (unit (place_of k (S e) k))))
  | _ => unit (place_of k c k)
  end.

Definition group_means (a : averaging) (c : nat) : list linear :=
  let k := local_steps (the_round a) in
  unit 0 :: slope_form a :: map (fun b => unit (place_of k c b)) (seq 0 k) ++ [optimum_form a c].

(** The sum of a group's gradients along its local steps, in the mean over the group. *)
Definition along (a : averaging) (c : nat) : linear :=
  let k := local_steps (the_round a) in lsum k (fun b => unit (place_of k c b)).

Definition group_form (a : averaging) (w : averaging_certificate) (c : nat) : quadratic :=
  let k := local_steps (the_round a) in
  group (the_round a) k (nth c (pairs_of_groups w) []) (nth c (budgets_at_optimum w) 0%Q)
    (nth c (budgets_at_x w) 0%Q).

Definition reach (a : averaging) : Q := Qred (server_lr (the_round a) * client_lr (the_round a)).

(** What is random of one client's weight alone, over its group. *)
Definition alone (a : averaging) (c : nat) : Q :=
  Qred (reach a * reach a * number a c * (nth c (square_weights a) 0%Q - product_weight a c c)).

Definition after_round (a : averaging) : quadratic :=
  let m := length (sizes a) in
  qadd (product (unit 0) (unit 0))
    (qadd (qsums m (fun c => qscale (Qred (-2 * reach a * (nth c (mean_weights a) 0%Q * number a c)))
       (both (unit 0) (along a c))))
      (qadd (qsums m (fun c => qsums m (fun e =>
         qscale (Qred (reach a * reach a * (product_weight a c e * (number a c * number a e))))
           (product (along a c) (along a e)))))
        (qsums m (fun c => qscale (alone a c) (product (along a c) (along a c)))))).

Definition block_of_means (a : averaging) (w : averaging_certificate) : quadratic :=
  qadd (qsums (length (sizes a)) (fun c => substituted (group_form a w c) (group_means a c)))
    (qadd (qscale (rate (the_round a)) (product (unit 0) (unit 0))) (qscale (-1) (after_round a))).

Definition block_of_group (a : averaging) (w : averaging_certificate) (c : nat) : quadratic :=
  let k := local_steps (the_round a) in
  qadd (substituted (group_form a w c) (differences k))
    (qscale (- alone a c) (product (ones k) (ones k))).

Definition group_proved (a : averaging) (w : averaging_certificate) (c : nat) : bool :=
  let k := local_steps (the_round a) in
  (1 <=? nth c (sizes a) 0)%nat && negb (Qle_bool (part a c) 0)
  && pairs_fit (Qred (gap (the_round a) * part a c)) k k (nth c (pairs_of_groups w) [])
  && Qle_bool 0 (nth c (budgets_at_optimum w) 0%Q) && Qle_bool 0 (nth c (budgets_at_x w) 0%Q)
  && ((nth c (sizes a) 0 =? 1)%nat
      || is_sum_of_squares (block_of_group a w c) (nth c (squares_of_groups w) [])).

(** Of the dissimilarity at the optimum alone, each group's budget is its share of one. *)
Definition budgets_fit (a : averaging) (w : averaging_certificate) : bool :=
  let c := the_round a in
  let m := length (sizes a) in
  if everywhere c
  then Qle_bool (plus (sumQ m (fun e => nth e (budgets_at_optimum w) 0%Q))
         (sumQ m (fun e => nth e (budgets_at_x w) 0%Q))) (heterogeneity c)
  else forallb (fun e => Qle_bool (nth e (budgets_at_optimum w) 0%Q) (heterogeneity c * part a e)
         && Qle_bool (nth e (budgets_at_x w) 0%Q) 0) (seq 0 m).

Definition proves_averaging (a : averaging) (w : averaging_certificate) : bool :=
  let c := the_round a in
  (1 <=? length (sizes a))%nat && (1 <=? local_steps c)%nat
  && negb (Qle_bool (smoothness c) 0) && negb (Qle_bool (smoothness c) (convexity c))
  && negb (noisy c) && negb (descent c)
  && forallb (group_proved a w) (seq 0 (length (sizes a)))
  && budgets_fit a w
  && is_sum_of_squares (block_of_means a w) (squares_of_means w).

Definition averages (a : averaging) : Prop :=
  let c := the_round a in
  let reals := map Q2R in
  forall (V : space) (F : nat -> nat -> V -> R) (G : nat -> nat -> V -> V) (x xs : V) (d : R)
    (weights : law (nat -> nat -> R)),
  (forall e i, member (sizes a) e i ->
    interpolable (Q2R (smoothness c)) (Q2R (convexity c)) (F e i) (G e i)) ->
  same (weighed_gradient (sizes a) (reals (shares a)) G xs) zero ->
  (if everywhere c
   then forall e i y, member (sizes a) e i ->
     square (minus (G e i y) (weighed_gradient (sizes a) (reals (shares a)) G y)) <= d * d
   else weighed (sizes a) (reals (shares a)) (fun e i => square (G e i xs)) <= d * d) ->
  random_weights weights (sizes a) (reals (mean_weights a)) (reals (square_weights a))
    (map reals (product_weights a)) ->
  expectation weights (fun weight => square (minus (averaging_round (sizes a) (local_steps c)
    (Q2R (client_lr c)) (Q2R (server_lr c)) G weight x) xs))
  <= Q2R (rate c) * square (minus x xs)
     - Q2R (gap c) * (weighed (sizes a) (reals (shares a)) (fun e i => F e i x)
                      - weighed (sizes a) (reals (shares a)) (fun e i => F e i xs))
     + Q2R (heterogeneity c) * (d * d).

(** ** The proof *)

Lemma nth_reals c l : nth c (map Q2R l) 0 = Q2R (nth c l 0%Q).
Proof. rewrite <- Q2R_0 at 1. apply map_nth. Qed.

Lemma Q2R_sumQ m f : Q2R (sumQ m f) = sum m (fun i => Q2R (f i)).
Proof. induction m as [|m IH]; simpl; [apply Q2R_0|]. now rewrite value_plus, IH. Qed.

Lemma lin_lsum {V : space} m f (vs : list V) w :
  inner (lin (lsum m f) vs) w = sum m (fun i => inner (lin (f i) vs) w).
Proof. induction m as [|m IH]; cbn [lsum sum]; [apply lin_nil|]. now rewrite lin_ladd, IH. Qed.

Lemma form_qsums {V : space} m f (vs : list V) : form (qsums m f) vs = sum m (fun i => form (f i) vs).
Proof. induction m as [|m IH]; simpl; [reflexivity|]. now rewrite form_qadd, IH. Qed.

Section Proof.
Variables (a : averaging) (w : averaging_certificate).
Hypothesis ok : proves_averaging a w = true.
Let c := the_round a.
Let K := local_steps c.
Let C := length (sizes a).
Let n e := nth e (sizes a) 0%nat.
Let eta := Q2R (client_lr c).
Let srv := Q2R (server_lr c).
Let alpha := map Q2R (shares a).

Variables (V : space) (F : nat -> nat -> V -> R) (G : nat -> nat -> V -> V) (x xs : V) (d : R).
Variable weights : law (nat -> nat -> R).
Hypothesis interpolated : forall e i, member (sizes a) e i ->
  interpolable (Q2R (smoothness c)) (Q2R (convexity c)) (F e i) (G e i).
Hypothesis optimal : same (weighed_gradient (sizes a) alpha G xs) zero.
Hypothesis alike : if everywhere c
  then forall e i y, member (sizes a) e i ->
    square (minus (G e i y) (weighed_gradient (sizes a) alpha G y)) <= d * d
  else weighed (sizes a) alpha (fun e i => square (G e i xs)) <= d * d.
Hypothesis random : random_weights weights (sizes a) (map Q2R (mean_weights a))
  (map Q2R (square_weights a)) (map (map Q2R) (product_weights a)).

Let z : V := minus x xs.
Let slope : V := weighed_gradient (sizes a) alpha G x.
Let own (e i b : nat) : V := G e i (local_point (G e i) K x xs eta b).
Let A e := nth e alpha 0 * INR (n e).

Lemma checked : (1 <= C)%nat /\ (1 <= K)%nat /\ 0 < Q2R (smoothness c) /\
  Q2R (convexity c) < Q2R (smoothness c) /\ noisy c = false /\ descent c = false /\
  (forall e, (e < C)%nat -> group_proved a w e = true) /\ budgets_fit a w = true /\
  is_sum_of_squares (block_of_means a w) (squares_of_means w) = true.
Proof.
  assert (H := ok). unfold proves_averaging in H. fold c C K in H.
  do 8 (apply andb_prop in H; destruct H as [H ?]).
  repeat match goal with
  | H : (_ <=? _)%nat = true |- _ => apply Nat.leb_le in H
  | H : negb (Qle_bool _ _) = true |- _ => apply Q2R_lt in H
  | H : negb _ = true |- _ => apply negb_true_iff in H
  end.
  rewrite Q2R_0 in *. repeat split; auto.
  intros e E. match goal with H : forallb _ _ = true |- _ => rewrite forallb_forall in H; apply H end.
  apply in_seq. lia.
Qed.

Lemma group_checked e : (e < C)%nat -> (1 <= n e)%nat /\ 0 < Q2R (part a e) /\
  pairs_fit (Qred (gap c * part a e)) K K (nth e (pairs_of_groups w) []) = true /\
  0 <= Q2R (nth e (budgets_at_optimum w) 0%Q) /\ 0 <= Q2R (nth e (budgets_at_x w) 0%Q) /\
  (n e = 1%nat \/ is_sum_of_squares (block_of_group a w e) (nth e (squares_of_groups w) []) = true).
Proof.
  intros E. destruct checked as (_ & _ & _ & _ & _ & _ & H & _). specialize (H e E).
  unfold group_proved in H. fold c K (n e) in H.
  do 5 (apply andb_prop in H; destruct H as [H ?]).
  repeat match goal with
  | H : (_ <=? _)%nat = true |- _ => apply Nat.leb_le in H
  | H : negb (Qle_bool _ _) = true |- _ => apply Q2R_lt in H; rewrite Q2R_0 in H
  | H : Qle_bool 0 _ = true |- _ => apply Q2R_nonneg in H
  | H : _ || _ = true |- _ => apply orb_prop in H
  end.
  repeat split; auto.
  match goal with H : _ \/ _ |- _ => destruct H as [H|H]; [left; now apply Nat.eqb_eq|now right] end.
Qed.

Lemma part_value e : Q2R (part a e) = A e.
Proof.
  unfold part, number, A, alpha. rewrite Q2R_Qred, Q2R_mult, Q2R_inject, nth_reals. reflexivity.
Qed.

Lemma number_value e : Q2R (number a e) = INR (n e).
Proof. apply Q2R_inject. Qed.

Lemma positive e : (e < C)%nat -> 0 < INR (n e).
Proof. intros E. apply lt_0_INR. destruct (group_checked e E) as (P & _). lia. Qed.

(** A sum over all clients, by the means over groups. *)
Lemma weighed_average f : weighed (sizes a) alpha f = sum C (fun e => A e * average (n e) (f e)).
Proof.
  unfold weighed. fold C. apply sum_ext. intros e E. assert (P := positive e E).
  unfold A, average. fold (n e). field. lra.
Qed.

Lemma inner_weighed_gradient y v : inner (weighed_gradient (sizes a) alpha G y) v =
  sum C (fun e => A e * average (n e) (fun i => inner (G e i y) v)).
Proof.
  rewrite <- weighed_average. unfold weighed_gradient, weighed. rewrite inner_total.
  apply sum_ext. intros e _. now rewrite inner_scale, inner_total.
Qed.

(** *** The means *)

Definition mean_at (j : nat) : V :=
  match j with
  | O => z
  | S j => mean (n (j / S K)) (fun i => own (j / S K) i (j mod S K))
  end.
Definition all_means : list V := map mean_at (seq 0 (S (C * S K))).

Lemma place_below e b : (e < C)%nat -> (b <= K)%nat -> (place_of K e b < S (C * S K))%nat.
Proof. intros E B. unfold place_of. nia. Qed.

Lemma lin_first v : inner (lin (unit 0) all_means) v = inner z v.
Proof. unfold all_means. rewrite lin_unit_seq by lia. reflexivity. Qed.

Lemma lin_place e b v : (e < C)%nat -> (b <= K)%nat ->
  inner (lin (unit (place_of K e b)) all_means) v = inner (mean (n e) (fun i => own e i b)) v.
Proof.
  intros E B. unfold all_means. rewrite lin_unit_seq by now apply place_below.
  unfold place_of. cbn [mean_at].
  rewrite Nat.div_add_l, Nat.div_small, Nat.add_0_r by lia.
  rewrite (Nat.add_comm (e * S K)), Nat.mod_add, Nat.mod_small by lia. reflexivity.
Qed.

Lemma own_first e i : (1 <= K)%nat -> own e i 0 = G e i x.
Proof. intros P. unfold own. now rewrite local_first. Qed.

Lemma own_last e i : own e i K = G e i xs.
Proof. unfold own. now rewrite local_last. Qed.

Lemma lin_slope v : inner (lin (slope_form a) all_means) v = inner slope v.
Proof.
  destruct checked as (_ & P & _). unfold slope_form. fold c K C.
  rewrite lin_lsum. unfold slope. rewrite inner_weighed_gradient. apply sum_ext. intros e E.
  rewrite lin_lscale, part_value, lin_place, inner_mean by (try exact E; lia). f_equal.
  apply average_ext. intros i _. now rewrite own_first.
Qed.

Lemma lin_optimum e v : (e < C)%nat ->
  inner (lin (optimum_form a e) all_means) v = inner (mean (n e) (fun i => own e i K)) v.
Proof.
  intros E. unfold optimum_form. fold c K C. destruct e as [|e]; [|now apply lin_place].
  assert (O := optimal v). rewrite inner_weighed_gradient, inner_zero in O.
  destruct (group_checked 0 E) as (_ & P & _). rewrite part_value in P.
  rewrite lin_lscale, lin_lsum, Q2R_Qred, Q2R_div, part_value by
    (apply Q2R_nonzero; rewrite part_value; lra).
  replace (Q2R (-1)) with (-1) by (unfold Q2R; simpl; lra).
  rewrite (sum_ext (C - 1) _ (fun e => A (S e) * average (n (S e)) (fun i => inner (G (S e) i xs) v))).
  - replace C with (S (C - 1)) in O at 1 by lia. rewrite Noise.sum_first in O.
    rewrite inner_mean, (average_ext _ (fun i => inner (own 0 i K) v)
      (fun i => inner (G 0%nat i xs) v)) by (intros; now rewrite own_last).
    set (S0 := sum (C - 1) _) in *. set (M := average _ _) in *.
    apply (Rmult_eq_reg_l (A 0%nat)); [|lra].
    transitivity (- S0); [field; lra|lra].
  - intros e E'. rewrite lin_lscale, part_value, lin_place, inner_mean by lia. f_equal.
    apply average_ext. intros i _. now rewrite own_last.
Qed.

Lemma lin_along e v : (e < C)%nat -> inner (lin (along a e) all_means) v =
  sum K (fun b => inner (mean (n e) (fun i => own e i b)) v).
Proof.
  intros E. unfold along. fold c K. rewrite lin_lsum. apply sum_ext. intros b B.
  apply lin_place; lia.
Qed.

(** *** Clients *)

Let above (e i : nat) : R := F e i x - F e i xs.

Let bo e := Q2R (nth e (budgets_at_optimum w) 0%Q).
Let bx e := Q2R (nth e (budgets_at_x w) 0%Q).
Let at_optimum e := average (n e) (fun i => square (G e i xs)).
Let at_x e := average (n e) (fun i => square (minus (G e i x) slope)).

Lemma group_bounded e : (e < C)%nat ->
  average (n e) (fun i => form (group_form a w e) (map (coordinate z slope (own e i)) (seq 0 (K + 3))))
  <= bo e * at_optimum e + bx e * at_x e - Q2R (gap c) * A e * average (n e) (above e).
Proof.
  intros E. destruct checked as (_ & P & L & M & Q & _). destruct (group_checked e E) as (_ & _ & fit & _).
  unfold at_optimum, at_x, Rminus.
  rewrite Ropp_mult_distr_l, <- !average_scale, <- !average_add.
  unfold average. apply Rmult_le_compat_l.
  - left. now apply Rinv_0_lt_compat, positive.
  - apply sum_le. intros i I.
    assert (H := local_value (F e i) (G e i) c K x xs slope _ _ (nth e (budgets_at_optimum w) 0%Q)
      (nth e (budgets_at_x w) 0%Q) P L M (interpolated e i I) fit).
    rewrite Q2R_Qred, Q2R_mult, part_value in H. apply Rle_trans with (1 := H). right.
    unfold bo, bx, above. ring.
Qed.

Lemma group_divided e : (e < C)%nat ->
  average (n e) (fun i => form (group_form a w e) (map (coordinate z slope (own e i)) (seq 0 (K + 3)))) =
  form (substituted (group_form a w e) (group_means a e)) all_means
  + average (n e) (fun i => form (substituted (group_form a w e) (differences K))
      (differing (n e) K (own e) i)).
Proof.
  intros E. destruct (group_checked e E) as (P & _).
  apply (group_split (n e) K z slope (own e) P (group_form a w e) (group_means a e) all_means).
  unfold group_means. fold c K.
  replace (K + 3)%nat with (2 + (K + 1))%nat by lia.
  rewrite seq_app, seq_app. cbn [map]. rewrite !map_app. cbn [seq map app Nat.add].
  constructor; [|constructor].
  - intros v. rewrite lin_first. symmetry. now apply (mean_constant (n e) z).
  - intros v. rewrite lin_slope. symmetry. now apply (mean_constant (n e) slope).
  - apply Forall2_app.
    + rewrite <- (seq_shift K 1), <- (seq_shift K 0), !map_map.
      apply Forall2_map. intros b I v. apply in_seq in I. rewrite lin_place by lia. reflexivity.
    + constructor; [|constructor]. intros v. rewrite lin_optimum by exact E. reflexivity.
Qed.

(** *** The round *)

Let change (e i : nat) : V := minus (local_sgd eta (fun _ => G e i) K x) x.
Let path (e i : nat) : V := total K (fun b => own e i b).
Let M e : V := lin (along a e) all_means.
Let variance e := average (n e) (fun i => square (lin (ones K) (differing (n e) K (own e) i))).

Lemma change_value e i v : inner (change e i) v = - eta * inner (path e i) v.
Proof. apply local_change. Qed.

Lemma mean_path e v : (e < C)%nat -> inner (mean (n e) (path e)) v = inner (M e) v.
Proof.
  intros E. unfold M. rewrite lin_along by exact E. rewrite inner_mean. unfold path, average.
  rewrite (sum_ext (n e) _ (fun i => sum K (fun b => inner (own e i b) v)))
    by (intros; apply inner_total).
  rewrite sum_swap, <- sum_scale. apply sum_ext. intros b _. now rewrite inner_mean.
Qed.

Lemma total_change e v : (e < C)%nat ->
  inner (total (n e) (change e)) v = - eta * INR (n e) * inner (M e) v.
Proof.
  intros E. assert (P := positive e E). rewrite <- mean_path by exact E.
  rewrite inner_total, inner_mean. unfold average.
  rewrite (sum_ext (n e) _ (fun i => - eta * inner (path e i) v)) by (intros; apply change_value).
  rewrite sum_scale. field. lra.
Qed.

Lemma apart_path e i : (e < C)%nat ->
  same (apart (n e) (path e) i) (lin (ones K) (differing (n e) K (own e) i)).
Proof.
  intros E v. unfold apart. rewrite inner_minus, mean_path by exact E. unfold M.
  rewrite lin_along by exact E. unfold ones, differing. rewrite lin_repeat, Q2R_1 by lia.
  unfold path. rewrite inner_total.
  replace (sum K (fun b => inner (own e i b) v)
      - sum K (fun b => inner (mean (n e) (fun j => own e j b)) v))
    with (sum K (fun b => inner (own e i b) v)
      + (-1) * sum K (fun b => inner (mean (n e) (fun j => own e j b)) v)) by ring.
  rewrite <- sum_scale, <- sum_add, Rmult_1_l. apply sum_ext. intros b _. cbn [Nat.add].
  unfold apart. rewrite inner_minus. ring.
Qed.

Lemma squared_changes e : (e < C)%nat -> sum (n e) (fun i => square (change e i)) =
  eta * eta * INR (n e) * (square (M e) + variance e).
Proof.
  intros E. assert (P := positive e E). destruct (group_checked e E) as (P' & _).
  rewrite (sum_ext (n e) _ (fun i => eta * eta * inner (path e i) (path e i))).
  - rewrite sum_scale.
    assert (H := average_inner (n e) (path e) (path e) P').
    rewrite (same_inner _ _ _ _ (fun v => mean_path e v E) (fun v => mean_path e v E)) in H.
    rewrite (average_ext (n e) (fun i => inner (apart (n e) (path e) i) (apart (n e) (path e) i))
      (fun i => square (lin (ones K) (differing (n e) K (own e) i)))) in H
      by (intros; apply same_inner; now apply apart_path).
    fold (variance e) (square (M e)) in H. rewrite <- H. unfold average. field. lra.
  - intros i _. unfold square. rewrite change_value, inner_sym, change_value. ring.
Qed.

Lemma reach_value : Q2R (reach a) = srv * eta.
Proof. unfold reach. now rewrite Q2R_Qred, Q2R_mult. Qed.

Lemma alone_value e : Q2R (alone a e) = srv * eta * (srv * eta) * INR (n e)
  * (Q2R (nth e (square_weights a) 0%Q) - Q2R (product_weight a e e)).
Proof.
  unfold alone. now rewrite Q2R_Qred, !Q2R_mult, Q2R_minus, reach_value, number_value.
Qed.

Lemma product_weight_value e f :
  nth f (nth e (map (map Q2R) (product_weights a)) []) 0 = Q2R (product_weight a e f).
Proof.
  unfold product_weight. rewrite <- nth_reals. f_equal.
  exact (map_nth (map Q2R) (product_weights a) [] e).
Qed.

Lemma round_value :
  expectation weights (fun weight => square (minus (averaging_round (sizes a) K eta srv G weight x) xs))
  = form (after_round a) all_means + sum C (fun e => Q2R (alone a e) * variance e).
Proof.
  etransitivity;
    [exact (expected_average_square weights (sizes a) _ _ _ change random x xs srv)|].
  fold C z. unfold after_round. fold C.
  rewrite !form_qadd, form_product, !form_qsums.
  assert (Z : inner (lin (unit 0) all_means) (lin (unit 0) all_means) = square z).
  { unfold square. apply same_inner; intros v; apply lin_first. }
  rewrite Z.
  rewrite (sum_ext C (fun e => form (qscale _ (both _ _)) all_means) (fun e =>
    2 * srv * (nth e (map Q2R (mean_weights a)) 0 * inner (total (n e) (change e)) z))).
  2: { intros e E. rewrite form_qscale, form_both, Q2R_Qred, !Q2R_mult, reach_value, number_value.
       rewrite nth_reals, total_change by exact E.
       replace (Q2R (-2)) with (-2) by (unfold Q2R; simpl; lra).
       rewrite (same_inner (lin (unit 0) all_means) z (lin (along a e) all_means) (M e) lin_first
         (same_refl _)), (inner_sym V z). ring. }
  rewrite (sum_ext C (fun e => form (qsums C _) all_means) (fun e => sum C (fun f =>
    srv * srv * (nth f (nth e (map (map Q2R) (product_weights a)) []) 0
      * inner (total (n e) (change e)) (total (n f) (change f)))))).
  2: { intros e E. rewrite form_qsums. apply sum_ext. intros f E'.
       rewrite form_qscale, form_product, Q2R_Qred, !Q2R_mult, reach_value, !number_value.
       rewrite product_weight_value, total_change by exact E. fold (M e) (M f).
       rewrite (inner_sym V (M e) (total _ _)), total_change, (inner_sym V (M f)) by exact E'.
       ring. }
  rewrite (sum_ext C (fun e => form (qscale (alone a e) _) all_means)
    (fun e => Q2R (alone a e) * square (M e)))
    by (intros; now rewrite form_qscale, form_product).
  rewrite (sum_ext C (fun e => (nth e (map Q2R (square_weights a)) 0 - _) * _) (fun e =>
    (Q2R (nth e (square_weights a) 0%Q) - Q2R (product_weight a e e))
      * (eta * eta * INR (n e) * (square (M e) + variance e)))).
  2: { intros e E. rewrite nth_reals, product_weight_value. fold (n e).
       now rewrite squared_changes. }
  assert (T : srv * srv * sum C (fun e => (Q2R (nth e (square_weights a) 0%Q)
      - Q2R (product_weight a e e)) * (eta * eta * INR (n e) * (square (M e) + variance e))) =
    sum C (fun e => Q2R (alone a e) * square (M e)) + sum C (fun e => Q2R (alone a e) * variance e)).
  { rewrite <- sum_add, <- sum_scale. apply sum_ext. intros e _. rewrite alone_value. ring. }
  assert (U : forall f : nat -> nat -> R, sum C (fun e => sum C (fun g => srv * srv * f e g)) =
    srv * srv * sum C (fun e => sum C (f e))).
  { intros f. rewrite <- sum_scale. apply sum_ext. intros e _. apply sum_scale. }
  rewrite (U (fun e f => nth f (nth e (map (map Q2R) (product_weights a)) []) 0
      * inner (total (n e) (change e)) (total (n f) (change f)))), sum_scale.
  rewrite Rmult_plus_distr_l, T. unfold n. ring.
Qed.

(** *** Budgets *)

Lemma budgets_bounded : sum C (fun e => bo e * at_optimum e + bx e * at_x e)
  <= Q2R (heterogeneity c) * (d * d).
Proof.
  destruct checked as (_ & _ & _ & _ & _ & _ & _ & B & _). unfold budgets_fit in B. fold c C in B.
  assert (D : 0 <= d * d) by apply Rle_0_sqr. assert (Alike := alike).
  destruct (everywhere c).
  - assert (at_xs : forall e i, member (sizes a) e i -> square (G e i xs) <= d * d).
    { intros e i I. specialize (Alike e i xs I).
      assert (E : same (minus (G e i xs) (weighed_gradient (sizes a) alpha G xs)) (G e i xs)).
      { intros v. rewrite inner_minus, (optimal v), inner_zero. ring. }
      unfold square in *. now rewrite (same_inner _ _ _ _ E E) in Alike. }
    apply Q2R_le in B. rewrite value_plus, !Q2R_sumQ, <- sum_add in B.
    apply Rle_trans with (sum C (fun e => d * d * (bo e + bx e))).
    + apply sum_le. intros e E. destruct (group_checked e E) as (_ & _ & _ & O & X & _).
      fold (bo e) in O. fold (bx e) in X.
      assert (H1 : at_optimum e <= d * d) by (apply average_le; [|exact D]; intros; now apply at_xs).
      assert (H2 : at_x e <= d * d) by (apply average_le; [|exact D]; intros; now apply Alike).
      nra.
    + rewrite sum_scale. unfold bo, bx. nra.
  - rewrite weighed_average in Alike. fold at_optimum in Alike. rewrite forallb_forall in B.
    apply Rle_trans with (sum C (fun e => Q2R (heterogeneity c) * (A e * at_optimum e))).
    + apply sum_le. intros e E. specialize (B e ltac:(apply in_seq; lia)).
      apply andb_prop in B. destruct B as [B X]. apply Q2R_le in B. apply Q2R_le in X.
      rewrite Q2R_mult, part_value in B. rewrite Q2R_0 in X. fold (bo e) in B. fold (bx e) in X.
      assert (O : 0 <= at_optimum e) by (apply average_nonneg; intros; apply square_nonneg).
      assert (O' : 0 <= at_x e) by (apply average_nonneg; intros; apply square_nonneg). nra.
    + rewrite sum_scale.
      destruct checked as (P & _). destruct (group_checked 0 ltac:(lia)) as (_ & A0 & _ & O & _).
      rewrite part_value in A0. specialize (B 0%nat ltac:(apply in_seq; lia)).
      apply andb_prop in B. destruct B as [B _]. apply Q2R_le in B.
      rewrite Q2R_mult, part_value in B.
      assert (0 <= Q2R (heterogeneity c)) by nra. now apply Rmult_le_compat_l.
Qed.

Lemma group_varies e : (e < C)%nat -> Q2R (alone a e) * variance e <=
  average (n e) (fun i => form (substituted (group_form a w e) (differences K))
    (differing (n e) K (own e) i)).
Proof.
  intros E. destruct (group_checked e E) as (P & _ & _ & _ & _ & [One|S]).
  - assert (Z1 : forall f : nat -> V, same (apart (n e) f 0) zero).
    { intros f v. unfold apart, mean. rewrite One, inner_minus, inner_scale. cbn [total INR].
      rewrite inner_add, inner_zero. field. }
    assert (ZD : Forall (fun v => same v zero) (differing (n e) K (own e) 0)).
    { unfold differing. apply Forall_map, Forall_forall. intros b _. apply Z1. }
    assert (H : forall f : nat -> R, f 0%nat = 0 -> average (n e) f = 0).
    { intros f Z. rewrite One. unfold average. cbn [sum]. rewrite Z. ring. }
    unfold variance. rewrite !H; [lra|now apply form_of_zeros|].
    unfold square. rewrite <- form_product. now apply form_of_zeros.
  - unfold variance. rewrite <- average_scale. unfold average. apply Rmult_le_compat_l.
    + left. now apply Rinv_0_lt_compat, positive.
    + apply sum_le. intros i _. assert (H := sum_of_squares _ _ (differing (n e) K (own e) i) S).
      unfold block_of_group in H. fold c K in H.
      rewrite form_qadd, form_qscale, form_product, Q2R_opp in H. unfold square. lra.
Qed.

Theorem averaged :
  expectation weights (fun weight => square (minus (averaging_round (sizes a) K eta srv G weight x) xs))
  <= Q2R (rate c) * square z - Q2R (gap c) *
       (weighed (sizes a) alpha (fun e i => F e i x) - weighed (sizes a) alpha (fun e i => F e i xs))
     + Q2R (heterogeneity c) * (d * d).
Proof.
  rewrite round_value. assert (B := budgets_bounded).
  destruct checked as (_ & _ & _ & _ & _ & _ & _ & _ & S).
  assert (H := sum_of_squares _ _ all_means S). unfold block_of_means in H. fold c C in H.
  rewrite !form_qadd, !form_qscale, form_product, form_qsums in H.
  assert (Z : inner (lin (unit 0) all_means) (lin (unit 0) all_means) = square z).
  { unfold square. apply same_inner; intros v; apply lin_first. }
  rewrite Z in H. replace (Q2R (-1)) with (-1) in H by (unfold Q2R; simpl; lra).
  assert (T : sum C (fun e => form (substituted (group_form a w e) (group_means a e)) all_means
      + Q2R (alone a e) * variance e) <=
    sum C (fun e => (bo e * at_optimum e + bx e * at_x e)
      + - Q2R (gap c) * (A e * average (n e) (above e)))).
  { apply sum_le. intros e E. assert (G1 := group_bounded e E). rewrite group_divided in G1 by exact E.
    assert (G2 := group_varies e E). lra. }
  rewrite !sum_add, sum_scale in T.
  assert (W : weighed (sizes a) alpha (fun e i => F e i x)
      - weighed (sizes a) alpha (fun e i => F e i xs) = sum C (fun e => A e * average (n e) (above e))).
  { rewrite !weighed_average. unfold Rminus.
    rewrite <- (Rmult_1_l (sum C (fun e => A e * average (n e) (fun i => F e i xs)))).
    rewrite Ropp_mult_distr_l, <- sum_scale, <- sum_add. apply sum_ext. intros e _.
    unfold above, average, Rminus. rewrite sum_add.
    rewrite (sum_ext (n e) (fun i => - F e i xs) (fun i => (-1) * F e i xs)), sum_scale
      by (intros; ring). ring. }
  rewrite sum_add in B. rewrite W. lra.
Qed.

End Proof.

(** Whatever the checker accepts holds. *)
Theorem one_averaging a w : proves_averaging a w = true -> averages a.
Proof.
  intros ok V F G x xs d weights I O A W. cbv zeta in *. now apply (averaged a w).
Qed.

Ltac averaging_in_numbers H :=
  cbv beta iota zeta delta [averages sizes shares mean_weights square_weights product_weights the_round
    map] in H; in_numbers H.
