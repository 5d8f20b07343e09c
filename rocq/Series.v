(** Logarithms between rational numbers, and CA-Fed's sums over all rounds: the first terms are
    added up in intervals, the rest is bounded. *)

From Coq Require Import Reals QArith Qreals ZArith List Lra Lia Arith.
From fltheory Require Import Space Round Process Enclose Moments Refutation Refuted Chain.
Import ListNotations.
Open Scope R_scope.

(** ** Logarithms *)

Fixpoint squared (k : nat) (x : R) : R :=
  match k with O => x | S j => squared j x * squared j x end.
Fixpoint halved (k : nat) (q : Q) : Q := match k with O => q | S j => halved j (q / 2)%Q end.
Fixpoint i_squared (k : nat) (a : interval) : interval :=
  match k with O => a | S j => let b := i_squared j a in i_times b b end.

Lemma inside_squared k x a : inside x a -> inside (squared k x) (i_squared k a).
Proof. induction k; simpl; [auto|]. intros H. apply inside_times; auto. Qed.

Lemma squared_nonneg k x : 0 <= x -> 0 <= squared k x.
Proof. induction k; simpl; intros H; [exact H|]. specialize (IHk H). nra. Qed.

Lemma squared_le k x y : 0 <= x <= y -> squared k x <= squared k y.
Proof.
  induction k; simpl; intros H; [lra|]. assert (N := squared_nonneg k x (proj1 H)).
  specialize (IHk H). nra.
Qed.

Lemma squared_exp k q : squared k (exp (Q2R (halved k q))) = exp (Q2R q).
Proof.
  revert q. induction k as [|k IH]; simpl; intros q; [reflexivity|].
  rewrite IH, <- exp_plus. f_equal. rewrite Q2R_div by discriminate. unfold Q2R at 2 4. simpl. lra.
Qed.

Lemma exp_le x y : x <= y -> exp x <= exp y.
Proof. intros [H | ->]; [left; now apply exp_increasing|lra]. Qed.

Lemma ln_le x y : 0 < x -> x <= y -> ln x <= ln y.
Proof. intros P [H | ->]; [left; now apply ln_increasing|lra]. Qed.

Lemma ln_step x : 0 < x -> ln (x + 1) - ln x <= / x.
Proof.
  intros P. assert (I := Rinv_0_lt_compat x P).
  replace (x + 1) with (x * (1 + / x)) by (field; lra). rewrite ln_mult by lra.
  assert (H := exp_ineq1_le (ln (1 + / x))). rewrite exp_ln in H by lra. lra.
Qed.

Definition i_one_and (q : Q) : interval := i_plus (i_whole 1) (i_number q).

(** [y <= (1 + q/2^k)^(2^k)], so that [ln y <= q]. *)
Definition ln_below (k : nat) (y : interval) (q : Q) : bool :=
  (0 <? fst (i_one_and (halved k q)))%Z
  && (snd y <=? fst (i_squared k (i_one_and (halved k q))))%Z.
(** [1 <= y (1 - q/2^k)^(2^k)], so that [q <= ln y]. *)
Definition ln_above (k : nat) (y : interval) (q : Q) : bool :=
  (0 <? fst (i_one_and (- halved k q)))%Z && (0 <? fst y)%Z
  && (unit <=? fst (i_times y (i_squared k (i_one_and (- halved k q)))))%Z.

Lemma inside_one_and q : inside (1 + Q2R q) (i_one_and q).
Proof. apply inside_plus; [apply (inside_whole 1)|apply inside_number]. Qed.

Lemma inside_positive x a : inside x a -> (0 < fst a)%Z -> 0 < x.
Proof.
  unfold inside. intros H P. apply IZR_lt in P. assert (U := unit_positive).
  apply (Rmult_lt_reg_r (IZR unit)); lra.
Qed.

Lemma ln_below_sound k x y q : inside x y -> 0 < x -> ln_below k y q = true -> ln x <= Q2R q.
Proof.
  unfold ln_below. intros I P E. apply Bool.andb_true_iff in E. destruct E as [A B].
  apply Z.ltb_lt in A. apply Z.leb_le in B.
  assert (J := inside_one_and (halved k q)). assert (P' := inside_positive _ _ J A).
  rewrite <- (ln_exp (Q2R q)). apply ln_le; [exact P|]. rewrite <- (squared_exp k).
  apply Rle_trans with (squared k (1 + Q2R (halved k q))).
  - apply (i_at_most_sound _ _ y (i_squared k (i_one_and (halved k q)))); auto.
    now apply inside_squared.
  - apply squared_le. assert (H := exp_ineq1_le (Q2R (halved k q))). lra.
Qed.

Lemma squared_inverse k h : 0 < 1 + - h -> squared k (exp h) * squared k (1 + - h) <= 1.
Proof.
  intros P. assert (A : exp h * (1 + - h) <= 1).
  { assert (H := exp_ineq1_le (- h)). assert (X := exp_pos h).
    assert (Y : exp h * exp (- h) = 1) by (rewrite <- exp_plus, Rplus_opp_r; apply exp_0).
    apply (Rmult_le_compat_l (exp h)) in H; lra. }
  assert (B : 0 <= exp h * (1 + - h)) by (apply Rmult_le_pos; [left; apply exp_pos|lra]).
  assert (E : squared k (exp h) * squared k (1 + - h) = squared k (exp h * (1 + - h))).
  { clear. induction k as [|k IH]; simpl; [reflexivity|]. rewrite <- IH. ring. }
  rewrite E. clear E. induction k as [|k IH]; simpl; [exact A|].
  assert (N := squared_nonneg k _ B). nra.
Qed.

Lemma ln_above_sound k x y q : inside x y -> ln_above k y q = true -> Q2R q <= ln x.
Proof.
  unfold ln_above. intros I E. apply Bool.andb_true_iff in E. destruct E as [E C].
  apply Bool.andb_true_iff in E. destruct E as [A B].
  apply Z.ltb_lt in A, B. apply Z.leb_le in C.
  assert (J := inside_one_and (- halved k q)). assert (P' := inside_positive _ _ J A).
  rewrite Q2R_opp in P', J. assert (P := inside_positive _ _ I B).
  rewrite <- (ln_exp (Q2R q)). apply ln_le; [apply exp_pos|]. rewrite <- (squared_exp k).
  set (h := Q2R (halved k q)) in *.
  assert (K := inside_times _ _ _ _ I (inside_squared k _ _ J)).
  assert (One : 1 <= x * squared k (1 + - h)).
  { apply (i_at_most_sound _ _ (i_whole 1) _ (inside_whole 1) K).
    unfold i_whole. cbn [snd]. lia. }
  assert (T := squared_inverse k h ltac:(lra)).
  assert (N : 0 <= squared k (1 + - h)) by (apply squared_nonneg; lra).
  assert (M : 0 <= squared k (exp h)) by (apply squared_nonneg; left; apply exp_pos).
  destruct (Rle_dec (squared k (exp h)) x) as [|G]; [assumption|]. nra.
Qed.

(** ** Sums over all rounds *)

(** Terms that fall like 1/(t + e)^2. *)
Lemma sum_rest f A e n N : (1 <= n <= N)%nat -> 0 <= e ->
  (forall t, (n < t)%nat -> f t <= A / ((INR t + e) * (INR t + e))) -> 0 <= A ->
  sum N (fun k => f (S k))
  <= sum n (fun k => f (S k)) + A * (/ (INR n + e) - / (INR N + e)).
Proof.
  intros [P L] Z F Q. induction L as [|N L IH]; [right; ring|].
  cbn [sum]. assert (G := F (S N) ltac:(lia)). assert (I : 1 <= INR N) by (apply (le_INR 1); lia).
  rewrite S_INR in *. replace (INR N + 1 + e) with (INR N + e + 1) in * by ring.
  set (x := INR N + e) in *. assert (X : 1 <= x) by (unfold x; lra).
  assert (E : A / ((x + 1) * (x + 1)) <= A * (/ x - / (x + 1))).
  { unfold Rdiv. apply Rmult_le_compat_l; [exact Q|].
    replace (/ x - / (x + 1)) with (/ (x * (x + 1))) by (field; lra).
    apply Rinv_le_contravar; nra. }
  assert (T : A * (/ (INR n + e) - / (x + 1))
    = A * (/ (INR n + e) - / x) + A * (/ x - / (x + 1))) by ring. lra.
Qed.

(** Terms that fall like ln(t)/t^2. *)
Definition falling (x : R) : R := (3 / 2 + ln x) / x.

Lemma falling_step x : 2 <= x -> ln (x + 1) / ((x + 1) * (x + 1)) <= falling x - falling (x + 1).
Proof.
  intros P. unfold falling.
  assert (D := ln_step x ltac:(lra)).
  assert (N : 0 <= ln (x + 1)) by (rewrite <- ln_1; apply ln_le; lra).
  assert (I : / x <= / 2) by (apply Rinv_le_contravar; lra).
  assert (D' : (x + 1) * (ln (x + 1) - ln x) <= 3 / 2).
  { apply Rle_trans with ((x + 1) * / x); [apply Rmult_le_compat_l; lra|].
    replace ((x + 1) * / x) with (1 + / x) by (field; lra). lra. }
  replace ((3 / 2 + ln x) / x - (3 / 2 + ln (x + 1)) / (x + 1))
    with ((3 / 2 + ln (x + 1) - (x + 1) * (ln (x + 1) - ln x)) * / (x * (x + 1))) by (field; lra).
  apply Rle_trans with (ln (x + 1) * / (x * (x + 1))).
  - unfold Rdiv. apply Rmult_le_compat_l; [exact N|]. apply Rinv_le_contravar; nra.
  - apply Rmult_le_compat_r; [left; apply Rinv_0_lt_compat; nra|lra].
Qed.

Lemma sum_rest_of_logs f A e n N : (2 <= n <= N)%nat -> 0 <= e ->
  (forall t, (n < t)%nat -> f t <= ln (INR t) * (A / ((INR t + e) * (INR t + e)))) -> 0 <= A ->
  sum N (fun k => f (S k))
  <= sum n (fun k => f (S k)) + A * (falling (INR n + e) - falling (INR N + e)).
Proof.
  intros [P L] Z F Q. induction L as [|N L IH]; [right; ring|].
  cbn [sum]. assert (G := F (S N) ltac:(lia)). assert (I : 2 <= INR N) by (apply (le_INR 2); lia).
  rewrite S_INR in *. replace (INR N + 1 + e) with (INR N + e + 1) in * by ring.
  assert (Log : ln (INR N + 1) <= ln (INR N + e + 1)) by (apply ln_le; lra).
  set (x := INR N + e) in *. assert (X : 2 <= x) by (unfold x; lra).
  assert (H := falling_step x X). apply (Rmult_le_compat_l A) in H; [|exact Q].
  assert (V : 0 <= A / ((x + 1) * (x + 1))).
  { unfold Rdiv. apply Rmult_le_pos; [exact Q|left; apply Rinv_0_lt_compat; nra]. }
  apply (Rmult_le_compat_r _ _ _ V) in Log.
  replace (ln (x + 1) * (A / ((x + 1) * (x + 1))))
    with (A * (ln (x + 1) / ((x + 1) * (x + 1)))) in Log by (field; lra). lra.
Qed.

Lemma sum_converges f n B : (forall k, 0 <= f (S k)) ->
  (forall N, (n <= N)%nat -> sum N (fun k => f (S k)) <= B) ->
  exists l, sums_to f l /\ sum n (fun k => f (S k)) <= l <= B.
Proof.
  intros P H. set (u := fun n => sum n (fun k => f (S k))).
  assert (G : Un_growing u) by (intros N; unfold u; cbn [sum]; specialize (P N); lra).
  assert (All : forall N, u N <= B).
  { intros N. destruct (le_lt_dec n N) as [L|L]; [now apply H|].
    apply Rle_trans with (u n); [|now apply H].
    apply Rge_le, (growing_prop u n N G). lia. }
  destruct (growing_cv u G) as [l C].
  { exists B. intros x [i ->]. apply All. }
  exists l. split; [exact C|]. split; [exact (growing_ineq u l G C n)|].
  apply (Rle_cv_lim All C). intros eps E. exists 0%nat. intros k _.
  unfold R_dist. rewrite Rminus_diag_eq, Rabs_R0; auto.
Qed.

(** ** CA-Fed's sums *)

Record sums := {
  at_round : Z; waited : nat; mixed : interval; log_of_round : Z;
  inverse_squares : interval; squares : interval; delayed_squares : interval;
    delayed_logs : interval
}.

Section Sums.
Variables (s : chain_setting) (c : R) (i_c : interval) (lambda : Q) (ln_2 : Q).
Hypothesis c_inside : inside c i_c.
Hypothesis ln_2_above : ln 2 <= Q2R ln_2.
Let a := Q2R (step_scale s).
Let b := Q2R (step_offset s).

Definition q_step (j : Z) : Q := (step_scale s / (inject_Z j + step_offset s))%Q.
Definition i_step (j : Z) : interval := i_number (q_step j).
Definition i_step_square (j : Z) : interval := i_number (q_step j * q_step j).

Fixpoint wait (fuel : nat) (reach : interval) (m : nat) (mix : interval)
    : option (nat * interval) :=
  if (snd (i_times reach mix) <=? unit)%Z then Some (m, mix)
  else match fuel with
    | O => None
    | S f => wait f reach (S m) (i_times mix (i_number lambda))
    end.

Definition next_log (t log : Z) : Z :=
  if (Z.shiftl 1 (Z.log2 (t + 1)) =? t + 1)%Z
  then (Z.log2 (t + 1) * snd (i_number ln_2))%Z else (log + (unit / t + 1))%Z.

Definition first_sums : sums := {|
  at_round := 0; waited := 0; mixed := i_whole 1; log_of_round := 0;
  inverse_squares := i_whole 0; squares := i_whole 0; delayed_squares := i_whole 0;
  delayed_logs := i_whole 0 |}.

Definition next_sums (x : sums) : option sums :=
  let t := (at_round x + 1)%Z in
  match wait 100 (i_times i_c (i_whole t)) (waited x) (mixed x) with
  | Some (m, mix) =>
      let log := if (t =? 1)%Z then 0%Z else next_log (at_round x) (log_of_round x) in
      let here := i_step_square t in
      let late := (fst here, snd (i_step_square (Z.max 0 (t - Z.of_nat m)))) in
      Some {| at_round := t; waited := m; mixed := mix; log_of_round := log;
        inverse_squares := i_plus (inverse_squares x) (i_number (1 / (inject_Z t * inject_Z t)));
        squares := i_plus (squares x) here;
        delayed_squares := i_plus (delayed_squares x) late;
        delayed_logs := i_plus (delayed_logs x) (i_times (0%Z, log) late) |}
  | None => None
  end.

Fixpoint first_terms (n : nat) : option sums :=
  match n with
  | O => Some first_sums
  | S k => match first_terms k with Some x => next_sums x | None => None end
  end.

Hypothesis c_positive : 0 < c.
Hypothesis a_positive : 0 < a.
Hypothesis b_positive : 0 < b.
Hypothesis lambda_positive : 0 < Q2R lambda.

Variable delay : nat -> nat.
Hypothesis delay_least : forall t, (1 <= t)%nat ->
  least (fun m => c * INR t * Q2R lambda ^ m <= 1) (delay t).

Lemma step_is t : step s t = a / (INR t + b).
Proof.
  unfold step, decay. rewrite Rpower_1; [reflexivity|].
  assert (H := pos_INR t). assert (B := b_positive). fold b. lra.
Qed.

Lemma q_step_is j : Q2R (q_step (Z.of_nat j)) = step s j.
Proof.
  rewrite step_is, INR_IZR_INZ. unfold q_step. assert (B := b_positive).
  assert (J := pos_INR j). rewrite INR_IZR_INZ in J.
  rewrite Q2R_div, Q2R_plus, Q2R_whole; [reflexivity|]. intros E. apply Qeq_eqR in E.
  rewrite Q2R_plus, Q2R_whole in E. unfold Q2R at 2 in E. simpl in E. fold b in E. lra.
Qed.

Lemma inside_step j : inside (step s j) (i_step (Z.of_nat j)).
Proof. rewrite <- q_step_is. apply inside_number. Qed.

Lemma inside_step_square j : inside (step s j ^ 2) (i_step_square (Z.of_nat j)).
Proof.
  replace (step s j ^ 2) with (Q2R (q_step (Z.of_nat j) * q_step (Z.of_nat j)));
    [apply inside_number|]. rewrite Q2R_mult, q_step_is. ring.
Qed.

Lemma inside_inverse_square j : (1 <= j)%nat ->
  inside ((/ INR j) ^ 2) (i_number (1 / (inject_Z (Z.of_nat j) * inject_Z (Z.of_nat j)))).
Proof.
  intros L. replace ((/ INR j) ^ 2)
    with (Q2R (1 / (inject_Z (Z.of_nat j) * inject_Z (Z.of_nat j)))); [apply inside_number|].
  assert (J : 1 <= INR j) by (apply (le_INR 1); exact L). rewrite INR_IZR_INZ in *.
  rewrite Q2R_div, Q2R_mult, Q2R_whole.
  - replace (Q2R 1) with 1 by (unfold Q2R; simpl; lra). field. lra.
  - intros E. apply Qeq_eqR in E. rewrite Q2R_mult, Q2R_whole in E. unfold Q2R in E. simpl in E.
  nra.
Qed.

Lemma step_positive t : 0 < step s t.
Proof.
  rewrite step_is. apply Rdiv_lt_0_compat; [exact a_positive|].
  assert (H := pos_INR t). assert (B := b_positive). lra.
Qed.

Lemma step_falls t u : (t <= u)%nat -> step s u <= step s t.
Proof.
  intros L. rewrite !step_is. unfold Rdiv. apply Rmult_le_compat_l; [left; exact a_positive|].
  apply le_INR in L. assert (H := pos_INR t). assert (B := b_positive).
  apply Rinv_le_contravar; lra.
Qed.

Lemma wait_sound fuel reach m mix m' mix' : inside (Q2R lambda ^ m) mix ->
  wait fuel reach m mix = Some (m', mix') ->
  inside (Q2R lambda ^ m') mix' /\ (snd (i_times reach mix') <=? unit)%Z = true.
Proof.
  revert m mix. induction fuel as [|f IH]; cbn [wait]; intros m mix I E;
    destruct (snd (i_times reach mix) <=? unit)%Z eqn:T; try discriminate.
  - apply of_some in E. injection E as -> ->. now split.
  - apply of_some in E. injection E as -> ->. now split.
  - apply (IH (S m) _) in E; [exact E|]. cbn [pow]. rewrite Rmult_comm.
    apply inside_times; [exact I|apply inside_number].
Qed.

(** The log's bound above: that of the last power of two, and one over each round since. *)
Lemma next_log_sound t log : (1 <= t)%nat -> ln (INR t) * IZR unit <= IZR log ->
  ln (INR (S t)) * IZR unit <= IZR (next_log (Z.of_nat t) log).
Proof.
  intros P H. unfold next_log. assert (U := unit_positive).
  assert (X : 1 <= INR t) by (apply (le_INR 1); lia).
  destruct (Z.shiftl 1 (Z.log2 (Z.of_nat t + 1)) =? Z.of_nat t + 1)%Z eqn:E.
  - apply Z.eqb_eq in E. rewrite Z.shiftl_1_l in E. set (j := Z.log2 (Z.of_nat t + 1)) in *.
    assert (J : (0 <= j)%Z) by apply Z.log2_nonneg.
    assert (V : INR (S t) = 2 ^ Z.to_nat j).
    { rewrite INR_IZR_INZ, Nat2Z.inj_succ. unfold Z.succ. rewrite <- E, pow_IZR, Z2Nat.id; auto. }
    rewrite V, ln_pow by lra. rewrite INR_IZR_INZ, Z2Nat.id by exact J. rewrite mult_IZR.
    assert (K := proj2 (inside_number ln_2)). apply IZR_le in J.
    rewrite Rmult_assoc. apply Rmult_le_compat_l; [exact J|].
    apply Rle_trans with (Q2R ln_2 * IZR unit); [|exact K]. apply Rmult_le_compat_r; lra.
  - rewrite S_INR, plus_IZR, plus_IZR.
    assert (D := ln_step (INR t) ltac:(lra)).
    assert (B : IZR unit * / INR t <= IZR (unit / Z.of_nat t) + 1).
    { assert (M := Z.mod_pos_bound unit (Z.of_nat t) ltac:(lia)).
      assert (N := Z.div_mod unit (Z.of_nat t) ltac:(lia)).
      assert (O : (unit <= Z.of_nat t * (unit / Z.of_nat t + 1))%Z) by lia.
      apply IZR_le in O. rewrite mult_IZR, plus_IZR, <- INR_IZR_INZ in O.
      apply (Rmult_le_reg_l (INR t)); [lra|].
      replace (INR t * (IZR unit * / INR t)) with (IZR unit) by (field; lra). exact O. }
    apply (Rmult_le_compat_r (IZR unit)) in D; [|lra]. lra.
Qed.

Definition so_far (n : nat) (x : sums) : Prop :=
  at_round x = Z.of_nat n
  /\ c * INR n * Q2R lambda ^ waited x <= 1
  /\ inside (Q2R lambda ^ waited x) (mixed x)
  /\ ((1 <= n)%nat -> ln (INR n) * IZR unit <= IZR (log_of_round x))
  /\ inside (sum n (fun k => (/ INR (S k)) ^ 2)) (inverse_squares x)
  /\ inside (sum n (fun k => step s (S k) ^ 2)) (squares x)
  /\ inside (sum n (fun k => delayed_step s delay (S k) ^ 2)) (delayed_squares x)
  /\ inside (sum n (fun k => ln (INR (S k)) * delayed_step s delay (S k) ^ 2)) (delayed_logs x).

Lemma ln_nonneg t : (1 <= t)%nat -> 0 <= ln (INR t).
Proof.
  intros L. rewrite <- ln_1. apply ln_le; [lra|]. apply (le_INR 1). exact L.
Qed.

Lemma delayed_between t m : (1 <= t)%nat -> c * INR t * Q2R lambda ^ m <= 1 ->
  step s t <= delayed_step s delay t <= step s (t - m).
Proof.
  intros L H. unfold delayed_step. destruct (delay_least t L) as [_ Least].
  specialize (Least m H). split; apply step_falls; lia.
Qed.

Lemma next_sums_sound n x x' : so_far n x -> next_sums x = Some x' -> so_far (S n) x'.
Proof.
  intros (At & _ & Mixed & Log & Inv & Sq & Del & Logs). unfold next_sums. rewrite At.
  replace (Z.of_nat n + 1)%Z with (Z.of_nat (S n)) by lia.
  destruct (wait 100 _ (waited x) (mixed x)) as [[m mix]|] eqn:W; [|discriminate].
  intros E. apply of_some in E. subst x'. unfold so_far. cbn [at_round waited mixed log_of_round
    inverse_squares squares delayed_squares delayed_logs].
  destruct (wait_sound _ _ _ _ _ _ Mixed W) as [M T]. apply Z.leb_le in T.
  assert (Reach : c * INR (S n) * Q2R lambda ^ m <= 1).
  { apply (i_at_most_sound _ _ (i_times (i_times i_c (i_whole (Z.of_nat (S n)))) mix) (i_whole 1)).
    - apply inside_times; [|exact M]. apply inside_times; [exact c_inside|].
      rewrite INR_IZR_INZ. apply inside_whole.
    - apply (inside_whole 1).
    - unfold i_whole at 2. cbn [fst]. lia. }
  set (log := if (Z.of_nat (S n) =? 1)%Z then 0%Z else next_log (Z.of_nat n) (log_of_round x)).
  assert (Log' : ln (INR (S n)) * IZR unit <= IZR log).
  { unfold log. destruct (Z.eqb_spec (Z.of_nat (S n)) 1) as [E|E].
    - replace n with 0%nat by lia. simpl INR. rewrite ln_1. lra.
    - apply next_log_sound; [lia|]. apply Log. lia. }
  destruct (delayed_between (S n) m ltac:(lia) Reach) as [Low High].
  assert (Here := inside_step_square (S n)).
  assert (Late : inside (delayed_step s delay (S n) ^ 2) (fst (i_step_square (Z.of_nat (S n))),
    snd (i_step_square (Z.max 0 (Z.of_nat (S n) - Z.of_nat m))))).
  { assert (P := step_positive (S n)). assert (U := unit_positive).
    assert (B := proj2 (inside_step_square (S n - m))). apply proj1 in Here.
    replace (Z.of_nat (S n - m)) with (Z.max 0 (Z.of_nat (S n) - Z.of_nat m)) in B by lia.
    unfold inside. cbn [fst snd]. set (d := delayed_step s delay (S n)) in *.
    assert (step s (S n) ^ 2 <= d ^ 2) by (apply pow_incr; lra).
    assert (d ^ 2 <= step s (S n - m) ^ 2) by (apply pow_incr; lra).
    split; [apply Rle_trans with (1 := Here)|apply Rle_trans with (2 := B)];
      apply Rmult_le_compat_r; lra. }
  split; [reflexivity|split; [exact Reach|split; [exact M|split; [intros _; exact Log'|]]]].
  cbn [sum]. split; [|split; [|split]]; (apply inside_plus; [assumption|]); try assumption.
  - apply inside_inverse_square. lia.
  - apply inside_times; [|exact Late]. unfold inside. cbn [fst snd]. split; [|exact Log'].
    assert (H := ln_nonneg (S n) ltac:(lia)). assert (U := unit_positive).
    apply Rmult_le_pos; lra.
Qed.

Lemma first_terms_sound n x : first_terms n = Some x -> so_far n x.
Proof.
  revert x. induction n as [|n IH]; cbn [first_terms]; intros x E.
  - apply of_some in E. subst x. unfold so_far, first_sums.
    cbn [at_round waited mixed log_of_round inverse_squares squares delayed_squares delayed_logs
      sum pow INR]. repeat split; try (apply (inside_whole 0)); try (apply (inside_whole 1));
        try lra.
    intros H. lia.
  - destruct (first_terms n) as [y|]; [|discriminate].
  now apply (next_sums_sound n y x); [apply IH|].
Qed.

(** The rest: beyond round n no delay grows faster than by w in n rounds, so that
    [t - J_t + offset >= gamma (t + e)]. *)
Definition q_nat (n : nat) : Q := inject_Z (Z.of_nat n).
Definition is_bounded (n w : nat) (gamma e log : Q) (x : sums) : bool :=
  (2 <=? n)%nat && (1 <=? w)%nat && negb (Qle_bool gamma 0)
  && Qle_bool (lambda * q_nat (w + 1)) (q_nat w)
  && Qle_bool (gamma * q_nat n) (q_nat n - q_nat w)
  && Qle_bool (gamma * (q_nat n + e)) (q_nat n - q_nat (waited x) - 1 + step_offset s)
  && Qle_bool 0 e && Qle_bool e (step_offset s) && ln_below 40 (i_number (q_nat n + e)) log.

Lemma Q2R_nat n : Q2R (q_nat n) = INR n.
Proof. unfold q_nat. now rewrite Q2R_whole, <- INR_IZR_INZ. Qed.

Variables (n w : nat) (gamma q_e log : Q) (x : sums).
Hypothesis terms : first_terms n = Some x.
Hypothesis bounded : is_bounded n w gamma q_e log x = true.
Let g := Q2R gamma.
Let e := Q2R q_e.
Let M := waited x.

Lemma bounds : (2 <= n)%nat /\ (1 <= w)%nat /\ 0 < g /\ Q2R lambda * (INR w + 1) <= INR w
  /\ g * INR n <= INR n - INR w /\ g * (INR n + e) <= INR n - INR M - 1 + b
  /\ 0 <= e <= b /\ ln (INR n + e) <= Q2R log.
Proof.
  unfold is_bounded in bounded. apply Bool.andb_true_iff in bounded as [bounded Log].
  repeat (apply Bool.andb_true_iff in bounded as [bounded ?]).
  apply Nat.leb_le in bounded. repeat match goal with
  | H : Qle_bool _ _ = true |- _ => apply Qle_bool_iff, Qle_Rle in H end.
  rewrite ?Q2R_mult, ?Q2R_plus, ?Q2R_minus, ?Q2R_nat in *.
  replace (Q2R 1) with 1 in * by (unfold Q2R; simpl; lra).
  replace (Q2R 0) with 0 in * by (unfold Q2R; simpl; lra).
  assert (Positive : 0 < INR n + e).
  { assert (2 <= INR n) by (apply (le_INR 2); exact bounded). unfold e. lra. }
  apply (ln_below_sound 40 (INR n + e)) in Log; [| |exact Positive].
  2: { unfold e. rewrite <- Q2R_nat, <- Q2R_plus. apply inside_number. }
  unfold g, M, b, e in *.
  rewrite plus_INR in *. simpl (INR 1) in *.
  match goal with H : (1 <=? w)%nat = true |- _ => apply Nat.leb_le in H end.
  match goal with H : negb _ = true |- _ => rename H into P end.
  apply Bool.negb_true_iff in P.
  repeat split; try assumption; try lra.
  destruct (Rlt_le_dec 0 (Q2R gamma)) as [|N]; [assumption|].
  assert (Qle_bool gamma 0 = true); [|congruence].
  apply Qle_bool_iff, Rle_Qle. replace (Q2R 0) with 0 by (unfold Q2R; simpl; lra). exact N.
Qed.

Lemma delay_rest t : (n <= t)%nat ->
  c * INR t * Q2R lambda ^ (M + ((t - n) * w / n + 1)) <= 1
  /\ g * (INR t + e) <= INR t - INR (M + ((t - n) * w / n + 1)) + b.
Proof.
  intros L. destruct bounds as (N & W & G & La & Ga & Gb & _). set (k := ((t - n) * w / n + 1)%nat).
  destruct (first_terms_sound n x terms) as (_ & R & _).
  assert (K : (((t - n) * w <= k * n) /\ (k * n <= (t - n) * w + n))%nat).
  { unfold k. assert (A := Nat.div_mod ((t - n) * w) n ltac:(lia)).
    assert (B := Nat.mod_upper_bound ((t - n) * w) n ltac:(lia)). nia. }
  destruct K as [K1 K2]. apply le_INR in K1, K2. rewrite plus_INR in K2.
  rewrite !mult_INR, !minus_INR in K1, K2 by exact L.
  assert (IN : 2 <= INR n) by (apply (le_INR 2); exact N).
  assert (IW : 1 <= INR w) by (apply (le_INR 1); exact W).
  assert (IT := le_INR _ _ L). assert (IK := pos_INR k). assert (PL := lambda_positive).
  set (la := Q2R lambda) in *.
  split.
  - assert (Pow : la ^ k * (1 + INR k * / INR w) <= 1).
    { assert (P : 1 + INR k * / INR w <= (1 + / INR w) ^ k)
        by (apply poly, Rinv_0_lt_compat; lra).
      assert (P' : 0 < la ^ k) by (apply pow_lt, lambda_positive).
      apply Rle_trans with (la ^ k * (1 + / INR w) ^ k); [apply Rmult_le_compat_l; lra|].
      rewrite <- Rpow_mult_distr. apply Rle_trans with (1 ^ k); [|rewrite pow1; lra].
      apply pow_incr.
      assert (V := Rinv_0_lt_compat (INR w) ltac:(lra)). split; [apply Rmult_le_pos; lra|].
      replace (la * (1 + / INR w)) with (la * (INR w + 1) * / INR w) by (field; lra).
      apply (Rmult_le_reg_r (INR w)); [lra|]. rewrite Rmult_assoc, Rinv_l by lra. lra. }
    assert (T : INR t / INR n * la ^ k <= 1).
    { apply Rle_trans with (2 := Pow). rewrite Rmult_comm.
      apply Rmult_le_compat_l; [left; apply pow_lt, lambda_positive|].
      apply (Rmult_le_reg_r (INR n * INR w)); [nra|].
      replace (INR t / INR n * (INR n * INR w)) with (INR t * INR w) by (field; lra).
      replace ((1 + INR k * / INR w) * (INR n * INR w)) with (INR n * INR w + INR k * INR n)
        by (field; lra). lra. }
    rewrite pow_add. fold M in R.
    replace (c * INR t * (la ^ M * la ^ k))
      with (c * INR n * la ^ M * (INR t / INR n * la ^ k)) by (field; lra).
    assert (P : 0 < c * INR n * la ^ M).
    { apply Rmult_lt_0_compat; [nra|apply pow_lt, lambda_positive]. }
    assert (P' : 0 < INR t / INR n * la ^ k).
    { apply Rmult_lt_0_compat; [apply Rdiv_lt_0_compat; lra|apply pow_lt, lambda_positive]. }
    nra.
  - rewrite plus_INR. apply (Rmult_le_reg_l (INR n)); [lra|].
    assert ((INR t - INR n) * (g * INR n) <= (INR t - INR n) * (INR n - INR w))
      by (apply Rmult_le_compat_l; lra).
    assert (INR n * (g * (INR n + e)) <= INR n * (INR n - INR M - 1 + b))
      by (apply Rmult_le_compat_l; lra). nra.
Qed.

Lemma delayed_rest t : (n < t)%nat ->
  delayed_step s delay t ^ 2 <= a * a / (g * g) / ((INR t + e) * (INR t + e)).
Proof.
  intros L. destruct (delay_rest t ltac:(lia)) as [R G]. set (m := (M + _)%nat) in *.
  destruct bounds as (N & _ & P & _ & _ & _ & Pe & _).
  assert (T : 0 < INR t) by (apply lt_0_INR; lia).
  assert (H : delayed_step s delay t <= a / (g * (INR t + e))).
  { unfold delayed_step. rewrite step_is. unfold Rdiv. apply Rmult_le_compat_l.
    - left. exact a_positive.
    - apply Rinv_le_contravar; [nra|]. destruct (delay_least t ltac:(lia)) as [_ Least].
      specialize (Least m R). assert (J : (t - m <= t - Nat.min (delay t) t)%nat) by lia.
      apply le_INR in J. destruct (le_lt_dec m t) as [I|I].
      + rewrite minus_INR in J by exact I. lra.
      + apply lt_INR in I. assert (Z := pos_INR (t - Nat.min (delay t) t)). lra. }
  replace (a * a / (g * g) / ((INR t + e) * (INR t + e)))
    with ((a / (g * (INR t + e))) ^ 2) by (field; lra).
  apply pow_incr. split; [left; apply step_positive|exact H].
Qed.

Lemma steps_rest t : (n < t)%nat -> step s t ^ 2 <= a * a / ((INR t + e) * (INR t + e)).
Proof.
  intros L. assert (T : 0 < INR t) by (apply lt_0_INR; lia).
  destruct bounds as (_ & _ & _ & _ & _ & _ & Pe & _).
  replace (a * a / ((INR t + e) * (INR t + e))) with ((a / (INR t + e)) ^ 2) by (field; lra).
  apply pow_incr. split; [left; apply step_positive|]. rewrite step_is. unfold Rdiv.
  apply Rmult_le_compat_l; [left; exact a_positive|].
  assert (B := b_positive). apply Rinv_le_contravar; lra.
Qed.

Definition more (i : interval) (rest : interval) : interval := (fst i, snd i + snd rest)%Z.

Lemma inside_more u v i r j : inside u i -> inside r j -> u <= v <= u + r -> inside v (more i j).
Proof.
  unfold inside, more. cbn [fst snd]. intros A B C. rewrite plus_IZR.
  assert (U := unit_positive). split; [nra|].
  apply Rle_trans with ((u + r) * IZR unit); [apply Rmult_le_compat_r; lra|lra].
Qed.

Definition q_rest : Q := (step_scale s * step_scale s / (q_nat n + q_e))%Q.
Definition q_late_rest : Q := (q_rest / (gamma * gamma))%Q.
Definition i_inverse_squares : interval := more (inverse_squares x) (i_number (1 / q_nat n)).
Definition i_squares : interval := more (squares x) (i_number q_rest).
Definition i_delayed_squares : interval := more (delayed_squares x) (i_number q_late_rest).
Definition i_delayed_logs : interval := more (delayed_logs x)
  (i_number (q_late_rest * ((3 # 2) + log))).

Theorem sums_enclosed : exists S_0 S_2 Y_0 Y_1,
  (sums_to (fun t => (/ INR t) ^ 2) S_0 /\ inside S_0 i_inverse_squares)
  /\ (sums_to (fun t => step s t ^ 2) S_2 /\ inside S_2 i_squares)
  /\ (sums_to (fun t => ln (INR t) * delayed_step s delay t ^ 2) Y_0 /\ inside Y_0 i_delayed_logs)
  /\ (sums_to (fun t => delayed_step s delay t ^ 2) Y_1 /\ inside Y_1 i_delayed_squares).
Proof.
  destruct bounds as (N & _ & G & _ & _ & _ & Pe & Log).
  assert (IN : 2 <= INR n) by (apply (le_INR 2); exact N).
  destruct (first_terms_sound n x terms) as (_ & _ & _ & _ & A & B & C & D).
  assert (Zero : Q2R 0 = 0) by (unfold Q2R; simpl; lra).
  assert (NZ : ~ (q_nat n == 0)%Q).
  { intros E. apply Qeq_eqR in E. rewrite Q2R_nat, Zero in E. lra. }
  assert (NE : ~ (q_nat n + q_e == 0)%Q).
  { intros E. apply Qeq_eqR in E. rewrite Q2R_plus, Q2R_nat, Zero in E. fold e in E. lra. }
  assert (GZ : ~ (gamma * gamma == 0)%Q).
  { intros E. apply Qeq_eqR in E. rewrite Q2R_mult, Zero in E. fold g in E. nra. }
  assert (R1 : Q2R q_rest = a * a * / (INR n + e)).
  { unfold q_rest. rewrite Q2R_div, Q2R_mult, Q2R_plus, Q2R_nat by exact NE. reflexivity. }
  assert (R2 : Q2R q_late_rest = a * a / (g * g) * / (INR n + e)).
  { unfold q_late_rest. rewrite Q2R_div, R1, Q2R_mult by exact GZ. fold g. field. lra. }
  assert (P : 0 <= a * a / (g * g)).
  { unfold Rdiv. apply Rmult_le_pos; [nra|]. left. apply Rinv_0_lt_compat. nra. }
  assert (Q : 0 <= a * a) by nra.
  assert (Inv : forall z N', 0 <= z -> (n <= N')%nat -> 0 < / (INR N' + z)).
  { intros z N' Z L. apply Rinv_0_lt_compat. assert (0 < INR N') by (apply lt_0_INR; lia). lra. }
  assert (Fall : forall N', (n <= N')%nat -> 0 <= falling (INR N' + e)).
  { intros N' L. unfold falling. apply Rmult_le_pos; [|exact (Rlt_le _ _ (Inv e N' (proj1 Pe) L))].
    assert (H : 2 <= INR N') by (apply (le_INR 2); lia).
    assert (0 <= ln (INR N' + e)) by (rewrite <- ln_1; apply ln_le; lra). lra. }
  destruct (sum_converges (fun t => (/ INR t) ^ 2) n
    (sum n (fun k => (/ INR (S k)) ^ 2) + 1 * / (INR n + 0))) as (S_0 & S0 & I0).
  { intros k. apply pow2_ge_0. }
  { intros N' L. apply Rle_trans with (1 := sum_rest (fun t => (/ INR t) ^ 2) 1 0 n N'
      ltac:(lia) (Rle_refl 0) ltac:(intros t T; rewrite Rplus_0_r; right; field;
        apply not_0_INR; lia) ltac:(lra)).
    specialize (Inv 0 N' (Rle_refl 0) L). lra. }
  destruct (sum_converges (fun t => step s t ^ 2) n
    (sum n (fun k => step s (S k) ^ 2) + a * a * / (INR n + e))) as (S_2 & S2 & I2).
  { intros k. apply pow2_ge_0. }
  { intros N' L. apply Rle_trans with (1 := sum_rest (fun t => step s t ^ 2) _ e n N'
      ltac:(lia) (proj1 Pe) steps_rest Q).
    specialize (Inv e N' (proj1 Pe) L). nra. }
  destruct (sum_converges (fun t => delayed_step s delay t ^ 2) n
    (sum n (fun k => delayed_step s delay (S k) ^ 2) + a * a / (g * g) * / (INR n + e)))
    as (Y_1 & Y1 & I3).
  { intros k. apply pow2_ge_0. }
  { intros N' L. apply Rle_trans with (1 := sum_rest (fun t => delayed_step s delay t ^ 2) _ e n N'
      ltac:(lia) (proj1 Pe) delayed_rest P).
    specialize (Inv e N' (proj1 Pe) L). nra. }
  destruct (sum_converges (fun t => ln (INR t) * delayed_step s delay t ^ 2) n
    (sum n (fun k => ln (INR (S k)) * delayed_step s delay (S k) ^ 2)
      + a * a / (g * g) * falling (INR n + e))) as (Y_0 & Y0 & I4).
  { intros k. apply Rmult_le_pos; [apply ln_nonneg; lia|apply pow2_ge_0]. }
  { intros N' L. apply Rle_trans with (1 := sum_rest_of_logs
      (fun t => ln (INR t) * delayed_step s delay t ^ 2) (a * a / (g * g)) e n N' ltac:(lia)
      (proj1 Pe)
      ltac:(intros t T; apply Rmult_le_compat_l; [apply ln_nonneg; lia|now apply delayed_rest]) P).
    specialize (Fall N' L). nra. }
  exists S_0, S_2, Y_0, Y_1. split; [|split; [|split]]; (split; [assumption|]).
  - apply (inside_more _ S_0 _ (Q2R (1 / q_nat n)) _ A (inside_number _)).
    rewrite Q2R_div, Q2R_nat by exact NZ. replace (Q2R 1) with 1 by (unfold Q2R; simpl; lra).
    rewrite Rplus_0_r in I0. exact I0.
  - apply (inside_more _ S_2 _ (Q2R q_rest) _ B (inside_number _)). now rewrite R1.
  - apply (inside_more _ Y_0 _ (Q2R (q_late_rest * ((3 # 2) + log))) _ D (inside_number _)).
    rewrite Q2R_mult, Q2R_plus, R2. replace (Q2R (3 # 2)) with (3 / 2) by (unfold Q2R; simpl; lra).
    assert (V : 0 <= a * a / (g * g) * / (INR n + e))
      by (apply Rmult_le_pos; [exact P|exact (Rlt_le _ _ (Inv e n (proj1 Pe) (le_n n)))]).
    apply (Rmult_le_compat_l _ _ _ V) in Log. unfold falling in I4. unfold Rdiv in *.
    split; [lra|]. apply Rle_trans with (1 := proj2 I4). lra.
  - apply (inside_more _ Y_1 _ (Q2R q_late_rest) _ C (inside_number _)). now rewrite R2.
Qed.

End Sums.
