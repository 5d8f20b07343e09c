(** The theorem: what the checker accepts bounds the round for every client loss of the class. *)

From Coq Require Import Reals QArith Qreals List Lra Lia Arith Bool.
From fltheory Require Import Space Forms Round OneRound Sound Groups Draw Noise.
Import ListNotations.
Open Scope R_scope.

(** How losses may differ: everywhere, or at the optimum of their mean. *)
Definition heterogeneous {V : space} (everywhere : bool) (d : R) (N : nat) (G : nat -> V -> V)
    (xs : V) : Prop :=
  if everywhere
  then forall i y, (i < N)%nat -> square (minus (G i y) (mean_gradient N G y)) <= d * d
  else average N (fun i => square (G i xs)) <= d * d.

Definition covers (c : claim) (n s : nat) : Prop :=
  (participants c <= n)%nat
  /\ match most_eligible c with None => True | Some p => INR n <= Q2R p end
  /\ INR s = Q2R (excluded_share c) * (INR n + INR s).

(** The bound, where clients see [seen xi] and [over] is the expectation over their noise xi. *)
Definition bounds (c : claim) {V : space} (n s : nat) (F : nat -> V -> R) (G : nat -> V -> V)
    (x xs : V) (d sigma rho : R) (draws : law (nat -> bool)) (noises : law V)
    (over : ((nat -> nat -> V) -> R) -> R) (seen : (nat -> nat -> V) -> nat -> nat -> V -> V)
    : Prop :=
  Q2R (q c) * expectation draws (fun who => over (fun xi =>
      square (minus (clients_round (n + s) (participants c)
        (local_steps c) (Q2R (client_lr c)) (Q2R (server_lr c)) (seen xi) who x) xs)))
  + (1 - Q2R (q c)) * expectation noises (fun noise =>
      square (minus (server_round (n + s) (Q2R (assist_lr c)) G noise x) xs))
  <= Q2R (rate c) * square (minus x xs)
     - Q2R (gap c) * (mean_loss (n + s) F x - mean_loss (n + s) F xs) + Q2R (heterogeneity c) * (d * d)
     + Q2R (server_noise c) * (sigma * sigma) + Q2R (noise c) * (rho * rho).

Definition holds (c : claim) : Prop :=
  forall (V : space) (n s : nat) (F : nat -> V -> R) (G : nat -> V -> V) (x xs : V)
    (d sigma rho : R) (draws : law (nat -> bool)) (noises : law V) (errors : law (nat -> nat -> V)),
  covers c n s ->
  (forall i, (i < n + s)%nat ->
    interpolable (Q2R (smoothness c)) (Q2R (convexity c)) (F i) (G i)) ->
  same (mean_gradient (n + s) G xs) zero ->
  heterogeneous (everywhere c) d (n + s) G xs ->
  draws_uniformly draws n (participants c) ->
  unbiased noises sigma ->
  if noisy c
  then noise_of_clients errors n (local_steps c) rho ->
    bounds c n s F G x xs d sigma rho draws noises (expectation errors) (noisy_gradients G)
  else bounds c n s F G x xs d sigma 0 draws noises (fun value => value (fun _ _ => zero))
    (fun _ => exact_gradients G).

Lemma Q2R_nonneg a : Qle_bool 0 a = true -> 0 <= Q2R a.
Proof. intros H. rewrite <- Q2R_0. apply Qle_Rle. now apply Qle_bool_iff. Qed.

Lemma Q2R_le a b : Qle_bool a b = true -> Q2R a <= Q2R b.
Proof. intros H. apply Qle_Rle. now apply Qle_bool_iff. Qed.

Lemma Q2R_lt a b : negb (Qle_bool b a) = true -> Q2R a < Q2R b.
Proof.
  intros H. apply negb_true_iff in H. apply Qlt_Rlt. apply Qnot_le_lt. intros E.
  apply Qle_bool_iff in E. congruence.
Qed.

Lemma Q2R_inject n : Q2R (inject_Z (Z.of_nat n)) = INR n.
Proof. unfold Q2R, inject_Z. cbn [Qnum Qden]. rewrite <- INR_IZR_INZ. lra. Qed.

Lemma form_of_zeros {V : space} A (vs : list V) : Forall (fun v => same v zero) vs -> form A vs = 0.
Proof.
  intros H. unfold form.
  assert (B : forall us : list V, Forall (fun v => same v zero) us -> bil A us vs = 0);
    [|now apply B].
  induction A as [|r A IH]; intros us U; simpl; [reflexivity|].
  destruct U as [|u us Z U]; simpl; [reflexivity|]. rewrite (Z _), inner_zero, (IH us U). ring.
Qed.

Section Main.
Variables (c : claim) (w : certificate).
Hypothesis ok : accepted c w = true.

Let K := local_steps c.
Let m := participants c.
Let a := Q2R (excluded_share c).
Let eta := Q2R (client_lr c).

Variables (V : space) (n s : nat) (F : nat -> V -> R) (G : nat -> V -> V) (x xs : V) (d : R) (l : law (nat -> bool)).
Variables (noises : law V) (sigma rho : R) (errors : law (nat -> nat -> V)).
Variable seen : (nat -> nat -> V) -> nat -> nat -> V -> V.
(** Clients' gradients at the optimum; of a descent, which says nothing of it, zero. *)
Variable star : nat -> V.
Variable k : nat.
Hypothesis K_is : K = S k.
Hypothesis errorful : noise_of_clients errors n (S k) rho.
Hypothesis sees : forall p i b y, In p errors -> same (seen (snd p) i b y) (add (G i y) (snd p i b)).
Hypothesis fresh : forall xi xi' i b y, xi i b = xi' i b -> seen xi i b y = seen xi' i b y.
Hypothesis quiet : noisy c = false ->
  rho = 0 /\ forall p, In p errors -> forall i b, snd p i b = zero.
Hypothesis covered : covers c n s.
Hypothesis interpolated : forall i, (i < n + s)%nat ->
  interpolable (Q2R (smoothness c)) (Q2R (convexity c)) (F i) (G i).
Hypothesis spoken : descent c = false -> forall i, star i = G i xs.
Hypothesis descending : descent c = true ->
  same (minus x xs) (scale (/ Q2R (smoothness c)) (mean_gradient (n + s) G x)).
Hypothesis optimal : same (mean (n + s) star) zero.
Hypothesis alike : if everywhere c
  then forall i, (i < n + s)%nat ->
    square (star i) <= d * d /\ square (minus (G i x) (mean_gradient (n + s) G x)) <= d * d
  else average (n + s) (fun i => square (star i)) <= d * d.
Hypothesis drawn : draws_uniformly l n m.
Hypothesis server_noisy : unbiased noises sigma.

Let out (i : nat) : V -> V := G (n + i)%nat.
Let slope : V := mean_gradient (n + s) G x.
Let z : V := minus x xs.
Let own (i b : nat) : V := Noise.own errors n k rho eta G seen x xs star errorful i b.
Let change (i : nat) : V := expected errors (Noise.change errors n k rho eta seen x errorful i).
Let out_own (i a : nat) : V := if (a <? 1)%nat then out i x else star (n + i).
Let noise_form (i : nat) := Noise.fluctuations errors n k rho eta G seen x xs star errorful i.
Let W : space := vectors (V := V) errors (of_probabilities _ _ _ _ errorful).

(** *** What has been checked *)

Let bo := fst (fst (shares c w)).
Let bx := snd (fst (shares c w)).
Let co := fst (snd (shares c w)).
Let cx := snd (snd (shares c w)).
Let eligible := group c K (eligible_pairs w) bo bx.
Let excluded := group c 1 (excluded_pairs w) co cx.
Let value := Qred (gap c * (1 - excluded_share c)).
Let out_value := (gap c * excluded_share c)%Q.

Lemma checks :
  in_range c = true /\ pairs_fit value (top c K) K (eligible_pairs w) = true /\
  pairs_fit out_value (top c 1) 1 (excluded_pairs w) = true /\ at_most (heterogeneity c) (budgets w) = true /\
  is_sum_of_squares (mean_block c eligible excluded) (mean_squares w) = true /\
  (one_eligible c || is_sum_of_squares (eligible_block c eligible) (eligible_squares w)) = true /\
  (negb (excludes c) || one_excluded c
     || is_sum_of_squares (substituted excluded (differences 1)) (excluded_squares w)) = true /\
  (negb (noisy c)
     || (length (OneRound.noises w) <=? K - 1)%nat && at_most (noise c - last_noise c) (OneRound.noises w)
        && orthogonal_fit (K - 1) (orthogonal w)
        && is_sum_of_squares (noise_block c eligible (OneRound.noises w) (orthogonal w))
             (fluctuation_squares w)) = true.
Proof.
  assert (H := ok). unfold accepted in H. unfold eligible, excluded, value, out_value, bo, bx, co, cx, K.
  destruct (shares c w) as [[b0 b1] [c0 c1]]. simpl.
  do 7 (apply andb_prop in H; destruct H as [H ?]). repeat split; assumption.
Qed.

Lemma ranges :
  (1 <= m)%nat /\ (1 <= K)%nat /\ 0 <= a < 1 /\ 0 <= Q2R (q c) <= 1 /\
  0 < Q2R (smoothness c) /\ Q2R (convexity c) < Q2R (smoothness c) /\
  (1 - Q2R (q c)) * (Q2R (assist_lr c) * Q2R (assist_lr c)) <= Q2R (server_noise c).
Proof.
  destruct checks as [R _]. unfold in_range in R.
  repeat (apply andb_prop in R; destruct R as [R ?]).
  repeat match goal with
  | H : (_ <=? _)%nat = true |- _ => apply Nat.leb_le in H
  | H : negb _ = true |- _ => apply Q2R_lt in H
  | H : Qle_bool _ _ = true |- _ => apply Q2R_le in H
  end.
  assert (Z := Q2R_0). assert (U := Q2R_1). unfold m, K, a.
  match goal with H : Q2R (_ * _) <= _ |- _ => rewrite !Q2R_mult, Q2R_minus in H end.
  repeat split; try lia; lra.
Qed.

Lemma counts : (1 <= m <= n)%nat /\ INR n <> 0 /\ INR s = a * (INR n + INR s) /\ 0 < INR n + INR s.
Proof.
  destruct ranges as (M & _). destruct covered as (P & _ & S). fold m in P. fold a in S.
  assert (0 < INR n) by (apply lt_0_INR; lia). assert (0 <= INR s) by apply pos_INR.
  repeat split; auto; try lia; lra.
Qed.

Lemma split_average f :
  average (n + s) f = (1 - a) * average n f + a * average s (fun i => f (n + i)%nat).
Proof.
  destruct counts as (_ & N & S & P). unfold average. rewrite sum_split, plus_INR.
  assert (Z : INR n + INR s <> 0) by lra.
  assert (E : a = INR s / (INR n + INR s)).
  { apply (Rmult_eq_reg_r (INR n + INR s)); [|exact Z]. rewrite <- S. field. exact Z. }
  rewrite E. clear E S. destruct (Nat.eq_dec s 0) as [nobody|s_positive].
  - rewrite nobody in Z |- *. simpl sum. rewrite !Rmult_0_r. change (INR 0) with 0 in Z |- *. field. rewrite Rplus_0_r in Z. assumption.
  - assert (INR s <> 0) by (apply not_0_INR; lia). field. repeat split; assumption.
Qed.

(** *** The means *)

Definition mean_coordinate (j : nat) : V :=
  match j with
  | O => z
  | S b => if (b <? K)%nat then mean n (fun i => own i b)
           else if (b =? K)%nat then mean s (fun i => out i x) else mean s (fun i => star (n + i)%nat)
  end.

Definition means : list V := map mean_coordinate (seq 0 (K + 3)).

Lemma lin_means j v : (j < K + 3)%nat -> inner (lin (unit j) means) v = inner (mean_coordinate j) v.
Proof. intros L. unfold means. now apply lin_unit_seq. Qed.

Lemma own_first i : same (own i 0) (G i x).
Proof. apply Noise.own_first. Qed.

Lemma own_last i : same (own i K) (star i).
Proof. rewrite K_is. apply Noise.own_last. Qed.

Lemma lin_mean_slope : same (lin (mean_slope c) means) slope.
Proof.
  intros v. destruct ranges as (_ & P & _). unfold mean_slope, slope, mean_gradient. fold K.
  rewrite lin_ladd, !lin_lscale, !lin_means by lia.
  rewrite inner_mean, split_average, Q2R_Qred, Q2R_minus, Q2R_1. fold a. f_equal; f_equal.
  - simpl. destruct (Nat.ltb_spec 0 K); [|lia]. rewrite inner_mean. apply average_ext.
    intros i _. apply (own_first i v).
  - simpl. destruct (Nat.ltb_spec K K); [lia|]. rewrite Nat.eqb_refl, inner_mean. reflexivity.
Qed.

Lemma lin_start : same (lin (start c) means) z.
Proof.
  intros v. unfold start. destruct (descent c) eqn:E; [|now rewrite lin_means by lia].
  destruct ranges as (_ & _ & _ & _ & L & _).
  rewrite lin_lscale, (lin_mean_slope v), Q2R_Qred, Q2R_div by (apply Q2R_nonzero; lra).
  unfold z. rewrite (descending eq_refl v), inner_scale, Q2R_1. fold slope. field. lra.
Qed.

Lemma eligible_optimum v :
  inner (mean n star) v = - a / (1 - a) * inner (mean s (fun i => star (n + i)%nat)) v.
Proof.
  destruct ranges as (_ & _ & A & _). assert (H := optimal v).
  rewrite inner_mean, split_average, inner_zero in H.
  rewrite !inner_mean. set (S := average s _) in *. set (T := average n _) in *.
  apply (Rmult_eq_reg_l (1 - a)); [|lra]. field_simplify; [|lra]. lra.
Qed.

Lemma eligible_split :
  average n (fun i => form eligible (map (coordinate z slope (own i)) (seq 0 (K + 3)))) =
  form (substituted eligible (eligible_means c)) means
  + average n (fun i => form (substituted eligible (differences K)) (differing n K own i)).
Proof.
  destruct counts as (M & _). destruct ranges as (_ & P & A & _).
  apply group_split; [lia|]. unfold eligible_means. fold K.
  replace (K + 3)%nat with (2 + (K + 1))%nat by lia.
  rewrite seq_app, seq_app. cbn [map]. rewrite !map_app. cbn [seq map app Nat.add].
  constructor; [|constructor].
  - intros v. rewrite lin_means by lia. symmetry. apply (mean_constant n z). lia.
  - intros v. rewrite (lin_mean_slope v). symmetry. apply (mean_constant n slope). lia.
  - apply Forall2_app.
    + rewrite <- (seq_shift K 1), <- (seq_shift K 0), !map_map.
      apply Forall2_map. intros b I v. apply in_seq in I.
      rewrite lin_means by lia. cbn [mean_coordinate Nat.add].
      destruct (Nat.ltb_spec b K); [reflexivity|lia].
    + constructor; [|constructor]. intros v.
      rewrite lin_lscale, lin_means, Q2R_Qred, Q2R_div by
        (try lia; apply Q2R_nonzero; rewrite Q2R_minus, Q2R_1; fold a; lra).
      rewrite Q2R_opp, Q2R_minus, Q2R_1. fold a. cbn [mean_coordinate Nat.add].
      destruct (Nat.ltb_spec (S K) K); [lia|]. destruct (Nat.eqb_spec (S K) K); [lia|].
      rewrite <- eligible_optimum, !inner_mean. apply average_ext. intros i _.
      cbn [coordinate]. symmetry. apply (own_last i v).
Qed.

Lemma excluded_split : (0 < s)%nat ->
  average s (fun i => form excluded (map (coordinate z slope (out_own i)) (seq 0 (1 + 3)))) =
  form (substituted excluded (excluded_means c)) means
  + average s (fun i => form (substituted excluded (differences 1)) (differing s 1 out_own i)).
Proof.
  intros S. apply group_split; [exact S|]. unfold excluded_means. fold K.
  cbn [map seq Nat.add].
  repeat apply Forall2_cons; [| | | |constructor]; intros v.
  - rewrite lin_means by lia. symmetry. now apply (mean_constant s z).
  - rewrite (lin_mean_slope v). symmetry. now apply (mean_constant s slope).
  - rewrite lin_means by lia. cbn [mean_coordinate].
    destruct (Nat.ltb_spec K K); [lia|]. rewrite Nat.eqb_refl. reflexivity.
  - rewrite lin_means by lia. cbn [mean_coordinate].
    destruct (Nat.ltb_spec (Datatypes.S K) K); [lia|].
    destruct (Nat.eqb_spec (Datatypes.S K) K); [lia|]. reflexivity.
Qed.

(** *** Budgets *)

Let at_optimum := average n (fun i => square (star i)).
Let at_x := average n (fun i => square (minus (G i x) slope)).
Let out_at_optimum := average s (fun i => square (star (n + i)%nat)).
Let out_at_x := average s (fun i => square (minus (out i x) slope)).
Let above (i : nat) := F i x - F i xs.

Lemma eligible_value :
  average n (fun i => form eligible (map (coordinate z slope (own i)) (seq 0 (K + 3))))
  + average n (fun i => form (V := W) (substituted eligible (random_forms K)) (noise_form i))
  <= Q2R bo * at_optimum + Q2R bx * at_x - Q2R value * average n above.
Proof.
  destruct checks as (_ & P & _). destruct ranges as (_ & _ & _ & _ & L & M & _).
  unfold at_optimum, at_x, Rminus.
  rewrite Ropp_mult_distr_l, <- !average_scale, <- !average_add.
  unfold average. apply Rmult_le_compat_l.
  - left. apply Rinv_0_lt_compat. destruct counts as (C & _). apply lt_0_INR. lia.
  - apply sum_le. intros i I. unfold eligible. rewrite K_is in *.
    assert (H := client_value errors n k rho eta G seen x xs star errorful sees c F slope eq_refl L M
      ltac:(intros j J; apply interpolated; lia) quiet spoken i value (eligible_pairs w) bo bx I P).
    apply Rle_trans with (1 := H). right. unfold above. ring.
Qed.

Lemma excluded_value : (0 < s)%nat ->
  average s (fun i => form excluded (map (coordinate z slope (out_own i)) (seq 0 (1 + 3))))
  <= Q2R co * out_at_optimum + Q2R cx * out_at_x
     - Q2R out_value * average s (fun i => above (n + i)%nat).
Proof.
  intros S. destruct checks as (_ & _ & P & _). destruct ranges as (_ & _ & _ & _ & L & M & _).
  unfold out_at_optimum, out_at_x, Rminus.
  rewrite Ropp_mult_distr_l, <- !average_scale, <- !average_add.
  unfold average. apply Rmult_le_compat_l.
  - left. apply Rinv_0_lt_compat. now apply lt_0_INR.
  - apply sum_le. intros i I. set (at_ (a : nat) := if (a <? 1)%nat then x else xs).
    assert (H := group_value c 1 (top c 1) x xs slope at_ (out_own i) (fun _ => zero)
      (fun a => F (n + i)%nat (at_ a)) ltac:(lia)
      ltac:(unfold top; destruct (descent c); lia) L M).
    unfold coordinates in H. cbn [seq map app Nat.sub] in H. rewrite app_nil_r in H.
    replace (- Q2R out_value * above (n + i)%nat) with (- (Q2R out_value * above (n + i)%nat)) by ring.
    apply H; auto.
    + assert (at_top : forall b, (b <= top c 1)%nat -> out_own i b = G (n + i)%nat (at_ b)).
      { intros [|b] B; [reflexivity|]. unfold out_own, at_. cbn [Nat.ltb Nat.leb].
        apply spoken. unfold top in B. destruct (descent c); [lia|reflexivity]. }
      intros b b' B B'. rewrite !at_top by assumption. apply interpolated. lia.
    + intros [|b] v B; [|lia]. unfold at_. cbn [Nat.ltb Nat.leb sum]. ring.
    + apply same_refl.
    + intros. apply same_refl.
Qed.

Lemma sum_of_list b l' : fold_right Qplus 0%Q (b :: l') = (b + fold_right Qplus 0 l')%Q.
Proof. reflexivity. Qed.

Lemma budgets_value :
  Q2R bo * at_optimum + Q2R bx * at_x + (Q2R co * out_at_optimum + Q2R cx * out_at_x)
  <= Q2R (heterogeneity c) * (d * d).
Proof.
  destruct checks as (_ & _ & _ & B & _). unfold at_most in B.
  apply andb_prop in B. destruct B as [P B]. apply Q2R_le in B.
  assert (D : 0 <= d * d) by nra.
  assert (O : 0 <= at_optimum /\ 0 <= out_at_optimum).
  { split; apply average_nonneg; intros; apply square_nonneg. }
  destruct ranges as (_ & _ & A & _).
  assert (rest : forall l', forallb (fun b => Qle_bool 0 b) l' = true ->
    0 <= Q2R (fold_right Qplus 0%Q l')).
  { induction l' as [|b l' IH]; intros E; cbn [fold_right]; [rewrite Q2R_0; lra|].
    simpl in E. apply andb_prop in E. destruct E as [E1 E2]. apply Q2R_nonneg in E1.
    rewrite Q2R_plus. specialize (IH E2). lra. }
  assert (Z0 := Q2R_0).
  assert (H0 : 0 <= Q2R (heterogeneity c)) by (specialize (rest _ P); lra).
  assert (none : 0 <= Q2R (heterogeneity c) * (d * d)) by now apply Rmult_le_pos.
  unfold bo, bx, co, cx, shares. assert (Alike := alike).
  destruct (everywhere c).
  - assert (H1 : at_optimum <= d * d).
    { apply average_le; [|exact D]. intros i I. apply Alike. lia. }
    assert (H2 : at_x <= d * d).
    { apply average_le; [|exact D]. intros i I. apply Alike. lia. }
    assert (H3 : out_at_optimum <= d * d).
    { apply average_le; [|exact D]. intros i I. apply Alike. lia. }
    assert (H4 : out_at_x <= d * d).
    { apply average_le; [|exact D]. intros i I. apply Alike. lia. }
    destruct (budgets w) as [|b0 [|b1 [|b2 [|b3 [|b4 l']]]]]; cbn [fst snd];
      rewrite ?Z0; try lra; cbn [forallb fold_right] in *;
      repeat match goal with
      | H : _ && _ = true |- _ => apply andb_prop in H; destruct H
      | H : Qle_bool 0 _ = true |- _ => apply Q2R_nonneg in H
      end; rewrite !Q2R_plus, ?Z0 in B; nra.
  - rewrite split_average in Alike. fold at_optimum in Alike.
    change (average s (fun i => square (star (n + i)%nat))) with out_at_optimum in Alike.
    destruct (budgets w) as [|b l']; cbn [fst snd]; rewrite ?Z0; [lra|].
    cbn [forallb] in P. apply andb_prop in P. destruct P as [P P']. apply Q2R_nonneg in P.
    rewrite sum_of_list, Q2R_plus in B. specialize (rest _ P').
    rewrite !Q2R_Qred, !Q2R_mult, Q2R_minus, Q2R_1. fold a. nra.
Qed.
(** *** The round *)

Let srv := Q2R (server_lr c).

Lemma change_value i v : (i < n)%nat -> inner (change i) v = - eta * sum K (fun b => inner (own i b) v).
Proof. intros I. rewrite K_is. now apply expected_change. Qed.

Lemma average_of_sums count (f : nat -> nat -> R) :
  average n (fun i => sum count (f i)) = sum count (fun b => average n (fun i => f i b)).
Proof. unfold average. now rewrite sum_swap, sum_scale. Qed.

Lemma mean_change_value v :
  inner (mean n change) v = - eta * sum K (fun b => inner (mean n (fun i => own i b)) v).
Proof.
  rewrite inner_mean, (average_ext n _ _ (fun i I => change_value i v I)), average_scale,
    average_of_sums.
  f_equal. apply sum_ext. intros b _. now rewrite inner_mean.
Qed.

Lemma after_clients_value : same (lin (after_clients c) means) (add z (scale srv (mean n change))).
Proof.
  intros v. unfold after_clients. fold K.
  rewrite lin_ladd, (lin_start v), lin_lscale, inner_add, inner_scale, mean_change_value by lia.
  rewrite Q2R_Qred, Q2R_opp, Q2R_mult. fold eta srv. cbn [mean_coordinate].
  unfold means. replace (K + 3)%nat with (S (K + 2)) by lia. cbn [seq map lin].
  rewrite inner_add, inner_scale, Q2R_0. unfold ones. rewrite lin_repeat, Q2R_1 by lia.
  rewrite (sum_ext K _ (fun b => inner (mean n (fun i => own i b)) v)); [ring|].
  intros b L. cbn [mean_coordinate Nat.add]. destruct (Nat.ltb_spec b K); [reflexivity|lia].
Qed.

Lemma after_server_value :
  same (lin (after_server c) means) (minus (minus x (scale (Q2R (assist_lr c)) slope)) xs).
Proof.
  intros v. unfold after_server.
  rewrite lin_ladd, (lin_start v), lin_lscale, (lin_mean_slope v), Q2R_opp.
  unfold z. rewrite !inner_minus, inner_scale. ring.
Qed.

Lemma apart_change i : (i < n)%nat ->
  same (apart n change i) (scale (- eta) (lin (ones K) (differing n K own i))).
Proof.
  intros I v. unfold apart. rewrite inner_minus, change_value, mean_change_value, inner_scale by exact I.
  unfold ones, differing. rewrite lin_repeat, Q2R_1 by lia.
  rewrite Rmult_1_l, <- Rmult_minus_distr_l. f_equal.
  replace (sum K (fun b => inner (own i b) v) - sum K (fun b => inner (mean n (fun i0 => own i0 b)) v))
    with (sum K (fun b => inner (own i b) v) + (-1) * sum K (fun b => inner (mean n (fun i0 => own i0 b)) v))
    by ring.
  rewrite <- sum_scale, <- sum_add. apply sum_ext. intros b _. cbn [Nat.add].
  unfold apart. rewrite inner_minus. ring.
Qed.

Let variance := average n (fun i => square (lin (ones K) (differing n K own i))).

Lemma variance_nonneg : 0 <= variance.
Proof. apply average_nonneg. intros. apply square_nonneg. Qed.

(** What is not negative in the differences of the eligible clients. *)
Lemma eligible_differences :
  Q2R (q c) * (srv * eta * (srv * eta)) * Q2R (spread c) * variance <=
  average n (fun i => form (substituted eligible (differences K)) (differing n K own i))
  \/ n = 1%nat.
Proof.
  destruct checks as (_ & _ & _ & _ & _ & P & _). apply orb_prop in P. destruct P as [P|P].
  - right. unfold one_eligible in P. destruct covered as (C & D & _). fold m in C.
    destruct ranges as (M & _). destruct (most_eligible c) as [p|]; [|discriminate].
    apply Q2R_le in P. rewrite Q2R_1 in P. assert (INR n <= INR 1) by (simpl; lra).
    apply INR_le in H. lia.
  - left. unfold variance. rewrite <- average_scale. unfold average. apply Rmult_le_compat_l.
    + left. apply Rinv_0_lt_compat. destruct counts as (C & _). apply lt_0_INR. lia.
    + apply sum_le. intros i _.
      assert (S := sum_of_squares _ _ (differing n K own i) P).
      unfold eligible_block in S. fold K in S.
      rewrite form_qadd, form_qscale, form_product, Q2R_Qred, !Q2R_mult, Q2R_opp in S.
      fold eta srv in S. unfold square. lra.
Qed.

Lemma excluded_differences : (0 < s)%nat ->
  0 <= average s (fun i => form (substituted excluded (differences 1)) (differing s 1 out_own i)).
Proof.
  intros S. destruct checks as (_ & _ & _ & _ & _ & _ & P & _).
  assert (A := ranges). destruct A as (_ & _ & A & _). destruct counts as (M & N & E & T).
  apply orb_prop in P. destruct P as [P|P]; [apply orb_prop in P; destruct P as [P|P]|].
  - exfalso. unfold excludes in P. rewrite negb_involutive in P.
    apply Qeq_bool_eq, Qeq_eqR in P. rewrite Q2R_0 in P. fold a in P. rewrite P in E.
    assert (0 < INR s) by now apply lt_0_INR. lra.
  - assert (O : s = 1%nat).
    { unfold one_excluded in P. destruct covered as (_ & D & _).
      destruct (most_eligible c) as [p|]; [|discriminate].
      apply Q2R_le in P. rewrite Q2R_mult, Q2R_minus, Q2R_1 in P. fold a in P.
      assert (INR s <= INR 1); [|apply INR_le in H; lia].
      simpl. apply (Rmult_le_reg_l (1 - a)); [lra|]. nra. }
    right. symmetry. rewrite O. unfold average. simpl. rewrite form_of_zeros; [ring|].
    unfold differing. simpl.
    assert (Z : forall f : nat -> V, same (apart 1 f 0) zero).
    { intros f v. unfold apart, mean. rewrite inner_minus, inner_scale. simpl.
      rewrite inner_add, inner_zero. field. }
    repeat constructor; apply Z.
  - apply average_nonneg. intros i _. now apply (sum_of_squares _ (excluded_squares w)).
Qed.

(** The variance of the drawn clients' mean; for one client any number serves. *)
Let kappa := match n with
  | 1%nat => Q2R (spread c)
  | _ => (INR n - INR m) / (INR m * (INR n - 1))
  end.

Lemma kappa_spread : n <> 1%nat -> kappa = (INR n - INR m) / (INR m * (INR n - 1)).
Proof. unfold kappa. destruct n as [|[|more]]; intros; congruence. Qed.

Lemma kappa_most : n <> 1%nat -> kappa <= Q2R (spread c).
Proof.
  intros N. rewrite (kappa_spread N). destruct covered as (C & D & _). fold m in C.
  destruct ranges as (M & _).
  assert (M1 : 1 <= INR m) by (change 1 with (INR 1); apply le_INR; lia).
  assert (N2 : 2 <= INR n) by (change 2 with (INR 2); apply le_INR; lia).
  assert (MN : INR m <= INR n) by (apply le_INR; lia).
  unfold spread. assert (I := Q2R_inject m). fold m.
  destruct (most_eligible c) as [p|].
  - rewrite Q2R_div, Q2R_mult, !Q2R_minus, I, Q2R_1.
    2: { apply Q2R_nonzero. rewrite Q2R_mult, Q2R_minus, I, Q2R_1. nra. }
    set (P := Q2R p) in *.
    apply (Rmult_le_reg_r (INR m * (INR n - 1))); [nra|].
    apply (Rmult_le_reg_r (P - 1)); [lra|].
    replace ((INR n - INR m) / (INR m * (INR n - 1)) * (INR m * (INR n - 1)) * (P - 1))
      with ((INR n - INR m) * (P - 1)) by (field; split; lra).
    replace ((P - INR m) / (INR m * (P - 1)) * (INR m * (INR n - 1)) * (P - 1))
      with ((P - INR m) * (INR n - 1)) by (field; split; lra).
    nra.
  - rewrite Q2R_div, I, Q2R_1 by (apply Q2R_nonzero; rewrite I; lra).
    apply (Rmult_le_reg_r (INR m * (INR n - 1))); [nra|].
    replace ((INR n - INR m) / (INR m * (INR n - 1)) * (INR m * (INR n - 1)))
      with (INR n - INR m) by (field; split; lra).
    replace (1 / INR m * (INR m * (INR n - 1))) with (INR n - 1) by (field; lra).
    lra.
Qed.

(** What the noise adds: the mean of the variances of what the clients change. *)
Let noise_variance := average n (fun i => square (V := W)
  (random_part errors (Noise.change errors n k rho eta seen x errorful i))).

Lemma clients_value :
  expectation l (fun who => expectation errors (fun xi =>
    square (minus (clients_round (n + s) m K eta srv (seen xi) who x) xs))) =
  square (lin (after_clients c) means) + srv * eta * (srv * eta) * kappa * variance
  + srv * srv / INR m * noise_variance.
Proof.
  destruct counts as (C & _). rewrite K_is. unfold clients_round.
  refine (eq_trans (expected_round errors n k rho eta seen x xs errorful fresh l s m srv drawn C) _).
  fold noise_variance. f_equal.
  refine (eq_trans (expected_square l n s m change drawn C x xs srv kappa kappa_spread) _).
  unfold square at 1. fold z.
  rewrite (same_inner _ _ _ _ (fun v => eq_sym (after_clients_value v))
             (fun v => eq_sym (after_clients_value v))).
  unfold square at 2. f_equal.
  rewrite (average_ext n _ (fun i => eta * eta * square (lin (ones K) (differing n K own i)))).
  - rewrite average_scale. fold variance. ring.
  - intros i I. unfold square.
    rewrite (same_inner _ _ _ _ (apart_change i I) (apart_change i I)).
    rewrite inner_scale, inner_scale_r. ring.
Qed.

Lemma noise_bounded :
  Q2R (q c) * (srv * srv / INR m * noise_variance) <=
  average n (fun i => form (V := W) (substituted eligible (random_forms K)) (noise_form i))
  + Q2R (noise c) * (rho * rho).
Proof.
  destruct counts as ((M & N) & _). destruct ranges as (_ & _ & _ & Q & _).
  assert (M1 : 0 < INR m) by (apply lt_0_INR; lia).
  set (each i := square (V := W) (lin (V := W) (ones (k + k)) (noise_form i))).
  assert (T : Q2R (last_noise c) = Q2R (q c) * (srv * srv / INR m) * (eta * eta)).
  { unfold last_noise. assert (I := Q2R_inject m). unfold m in *.
    rewrite Q2R_Qred, Q2R_div, !Q2R_mult, I by (apply Q2R_nonzero; rewrite I; lra).
    fold eta srv. field. lra. }
  assert (S0 : 0 <= srv * srv / INR m).
  { apply Rmult_le_pos; [apply Rle_0_sqr|left; now apply Rinv_0_lt_compat]. }
  assert (V0 : noise_variance <= eta * eta * (average n each + rho * rho)).
  { unfold noise_variance. rewrite <- (average_const n (rho * rho)) by lia.
    rewrite <- average_add, <- average_scale. unfold average. apply Rmult_le_compat_l.
    - left. apply Rinv_0_lt_compat, lt_0_INR. lia.
    - apply sum_le. intros i I. now apply change_variance. }
  apply Rle_trans with (Q2R (last_noise c) * (average n each + rho * rho)).
  { rewrite T, Rmult_assoc, Rmult_assoc. apply Rmult_le_compat_l; [lra|].
    now apply Rmult_le_compat_l. }
  destruct checks as (_ & _ & _ & _ & _ & _ & _ & P). apply orb_prop in P. destruct P as [P|P].
  - apply negb_true_iff in P. destruct (quiet P) as [Z0 Z1].
    assert (Z : forall i, (i < n)%nat -> Forall (fun v => same (V := W) v zero) (noise_form i))
      by (intros i I; now apply without_noise).
    assert (average n each = 0) as ->.
    { rewrite (average_ext n each (fun _ => 0)); [apply average_const; lia|]. intros i I. unfold each.
      assert (H := form_of_zeros (V := W) (product (ones (k + k)) (ones (k + k))) _ (Z i I)).
      now rewrite form_product in H. }
    rewrite (average_ext n _ (fun _ => 0)), average_const by (try lia; intros; now apply form_of_zeros, Z).
    rewrite Z0. lra.
  - do 3 (apply andb_prop in P; destruct P as [P ?]).
    unfold at_most in *. repeat match goal with H : _ && _ = true |- _ => apply andb_prop in H; destruct H end.
    match goal with H : Qle_bool (fold_right _ _ _) _ = true |- _ => apply Q2R_le in H; rewrite Q2R_minus in H end.
    rewrite K_is in *. replace (S k - 1)%nat with k in * by lia.
    assert (E : Q2R (last_noise c) * average n each <=
      average n (fun i => form (V := W) (substituted eligible (random_forms (S k))) (noise_form i))
      + Q2R (fold_right Qplus 0%Q (OneRound.noises w)) * (rho * rho)).
    { rewrite <- (average_const n (_ * (rho * rho))) by lia.
      rewrite <- average_add, <- average_scale. unfold average. apply Rmult_le_compat_l.
      - left. apply Rinv_0_lt_compat, lt_0_INR. lia.
      - apply sum_le. intros i I. eapply noise_value; eauto. }
    assert (0 <= rho * rho) by apply Rle_0_sqr. nra.
Qed.

Theorem bounded : bounds c n s F G x xs d sigma rho l noises (expectation errors) seen.
Proof.
  unfold bounds. fold m K eta srv.
  destruct checks as (_ & _ & _ & _ & B & _). assert (E := eligible_split).
  assert (EV := eligible_value). assert (NB := noise_bounded). assert (U := budgets_value).
  destruct ranges as (_ & _ & _ & Hq & _ & _ & SN). rewrite clients_value.
  assert (server : expectation noises (fun noise =>
      square (minus (server_round (n + s) (Q2R (assist_lr c)) G noise x) xs)) <=
    square (lin (after_server c) means)
    + Q2R (assist_lr c) * Q2R (assist_lr c) * (sigma * sigma)).
  { set (lr := Q2R (assist_lr c)). set (v := minus (minus x (scale lr slope)) xs).
    rewrite (expectation_ext _ _ (fun noise => square (add v (scale (- lr) noise)))).
    - replace (square (lin (after_server c) means)) with (square v).
      + replace (lr * lr) with (- lr * - lr) by ring. now apply expected_noise.
      + unfold square. symmetry. exact (same_inner _ _ _ _ after_server_value after_server_value).
    - intros p _. unfold square, server_round, v. fold slope.
      repeat (rewrite ?inner_minus, ?inner_minus_r, ?inner_add, ?inner_add_r, ?inner_scale,
        ?inner_scale_r).
      rewrite (inner_sym V (snd p)), (inner_sym V (snd p) xs), (inner_sym V (snd p) slope).
      rewrite (inner_sym V xs x), (inner_sym V slope x), (inner_sym V slope xs). ring. }
  assert (server' : (1 - Q2R (q c)) * expectation noises (fun noise =>
      square (minus (server_round (n + s) (Q2R (assist_lr c)) G noise x) xs)) <=
    (1 - Q2R (q c)) * square (lin (after_server c) means)
    + Q2R (server_noise c) * (sigma * sigma)).
  { assert (0 <= sigma * sigma) by apply Rle_0_sqr. nra. }
  assert (Z : inner (lin (start c) means) (lin (start c) means) = square z).
  { unfold square. apply same_inner; apply lin_start. }
  assert (M := sum_of_squares _ _ means B). unfold mean_block in M.
  rewrite !form_qadd, !form_qscale, !form_product, Z, Q2R_Qred, Q2R_mult, Q2R_minus, Q2R_opp,
    Q2R_1 in M.
  assert (V' : Q2R value * average n above + Q2R out_value * average s (fun i => above (n + i)%nat)
    = Q2R (gap c) * (mean_loss (n + s) F x - mean_loss (n + s) F xs)).
  { replace (mean_loss (n + s) F x - mean_loss (n + s) F xs) with (average (n + s) above).
    - unfold value, out_value. rewrite split_average, Q2R_Qred, !Q2R_mult, Q2R_minus, Q2R_1.
      fold a. ring.
    - unfold above, mean_loss, average, Rminus. rewrite sum_add.
      rewrite (sum_ext _ (fun i => - F i xs) (fun i => (-1) * F i xs)), sum_scale by (intros; ring).
      ring. }
  replace (Q2R (-1)) with (-1) in M by (unfold Q2R; simpl; lra).
  fold (square (lin (after_clients c) means)) (square (lin (after_server c) means)) in M.
  assert (X : form (if excludes c then substituted excluded (excluded_means c) else []) means
    <= Q2R co * out_at_optimum + Q2R cx * out_at_x
       - Q2R out_value * average s (fun i => above (n + i)%nat)).
  { destruct (Nat.eq_dec s 0) as [nobody|P].
    - assert (H : Q2R (excluded_share c) = 0).
      { destruct counts as (C & N & R & T). rewrite nobody in R. simpl in R. fold a.
        apply (Rmult_eq_reg_r (INR n + 0)); lra. }
      assert (excludes c = false) as ->.
      { unfold excludes. apply negb_false_iff, Qeq_eq_bool, eqR_Qeq. now rewrite Q2R_0. }
      assert (Q2R out_value = 0) as -> by (unfold out_value; rewrite Q2R_mult, H; ring).
      unfold out_at_optimum, out_at_x. rewrite nobody. unfold average. simpl.
      unfold form. rewrite bil_nil. lra.
    - assert (P' : (0 < s)%nat) by lia.
      assert (EX := excluded_split P'). assert (EXV := excluded_value P').
      assert (EXD := excluded_differences P').
      destruct (excludes c) eqn:X; [lra|].
      exfalso. unfold excludes in X. apply negb_false_iff, Qeq_bool_eq, Qeq_eqR in X.
      destruct counts as (_ & _ & R & _). fold a in X. rewrite X, Q2R_0 in R.
      assert (0 < INR s) by now apply lt_0_INR. lra. }
  assert (D : Q2R (q c) * (srv * eta * (srv * eta) * kappa * variance) <=
    average n (fun i => form (substituted eligible (differences K)) (differing n K own i))).
  { destruct (Nat.eq_dec n 1) as [One|Many].
    - assert (Z1 : forall f : nat -> V, same (apart n f 0) zero).
      { intros f v. unfold apart, mean. rewrite One, inner_minus, inner_scale. simpl.
        rewrite inner_add, inner_zero. field. }
      assert (ZD : Forall (fun v => same v zero) (differing n K own 0)).
      { unfold differing. apply Forall_map, Forall_forall. intros b _. apply Z1. }
      assert (ZV : variance = 0).
      { unfold variance. rewrite One. unfold average. simpl. rewrite <- One.
        assert (L : same (lin (ones K) (differing n K own 0)) zero).
        { intros v. unfold ones, differing. rewrite lin_repeat, inner_zero by lia.
          rewrite (sum_ext K _ (fun _ => 0)), sum_const; [ring|].
          intros b _. rewrite (Z1 _ v). apply inner_zero. }
        unfold square. rewrite (same_inner _ _ _ _ L L), inner_zero. ring. }
      rewrite ZV. right. rewrite One. unfold average. simpl. rewrite <- One.
      rewrite (form_of_zeros _ _ ZD). ring.
    - destruct eligible_differences as [H|H]; [|contradiction].
      apply Rle_trans with (2 := H).
      assert (Kp := kappa_most Many). assert (Vn := variance_nonneg).
      assert (0 <= srv * eta * (srv * eta)) by apply Rle_0_sqr.
      replace (Q2R (q c) * (srv * eta * (srv * eta) * kappa * variance))
        with (Q2R (q c) * (srv * eta * (srv * eta)) * variance * kappa) by ring.
      replace (Q2R (q c) * (srv * eta * (srv * eta)) * Q2R (spread c) * variance)
        with (Q2R (q c) * (srv * eta * (srv * eta)) * variance * Q2R (spread c)) by ring.
      apply Rmult_le_compat_l; [|exact Kp].
      apply Rmult_le_pos; [apply Rmult_le_pos; [lra|assumption]|assumption]. }
  fold z. lra.
Qed.

End Main.

Lemma no_noise (V : space) n K : noise_of_clients [(1, fun _ _ => zero : V)] n K 0.
Proof.
  constructor.
  - split; simpl; [|ring]. intros p [<-|[]]. simpl. lra.
  - intros. simpl. unfold square. rewrite inner_zero. lra.
  - intros. simpl. rewrite inner_zero. ring.
  - intros i j f g _ _ _. simpl. rewrite !inner_add, !inner_scale, !inner_zero, inner_add_r, inner_scale_r,
      inner_zero_r. ring.
Qed.

(** With a claim on the distance, the optimum is one. *)
Lemma alike_at_optimum (V : space) (every : bool) d N (G : nat -> V -> V) x xs :
  same (mean_gradient N G xs) zero -> heterogeneous every d N G xs ->
  if every
  then forall i, (i < N)%nat ->
    square (G i xs) <= d * d /\ square (minus (G i x) (mean_gradient N G x)) <= d * d
  else average N (fun i => square (G i xs)) <= d * d.
Proof.
  intros O A. destruct every; [|exact A]. intros i I. split; [|now apply A].
  assert (H := A i xs I).
  assert (E : same (minus (G i xs) (mean_gradient N G xs)) (G i xs)).
  { intros v. rewrite inner_minus, (O v), inner_zero. ring. }
  unfold square in *. now rewrite (same_inner _ _ _ _ E E) in H.
Qed.

(** Whatever the checker accepts holds. *)
Theorem one_round c w : proves c w = true -> holds c.
Proof.
  intros ok V n s F G x xs d sigma rho l noises errors C I O A D N.
  unfold proves in ok. apply andb_prop in ok. destruct ok as [far ok].
  apply negb_true_iff in far. assert (A' := alike_at_optimum V _ d _ G x xs O A).
  destruct (local_steps c) as [|k] eqn:K.
  { exfalso. unfold accepted in ok. destruct (shares c w) as [[? ?] [? ?]].
    unfold in_range in ok. rewrite K in ok. simpl in ok. now rewrite andb_false_r in ok. }
  destruct (noisy c) eqn:E.
  - intros U.
    apply (bounded c w ok V n s F G x xs d l noises sigma rho errors (noisy_gradients G)
      (fun i => G i xs) k K U); auto.
    + intros p i b y _. apply same_refl.
    + intros xi xi' i b y H. unfold noisy_gradients. now rewrite H.
    + congruence.
    + congruence.
  - assert (B : bounds c n s F G x xs d sigma 0 l noises (expectation [(1, fun _ _ => zero)])
      (fun _ => exact_gradients G)).
    { apply (bounded c w ok V n s F G x xs d l noises sigma 0 _ _ (fun i => G i xs) k K
        (no_noise V n (S k))); auto.
      + intros p i b y [<-|[]] v. simpl. unfold exact_gradients. rewrite inner_add, inner_zero. ring.
      + intros _. split; [reflexivity|]. now intros p [<-|[]].
      + congruence. }
    unfold bounds in *. apply Rle_trans with (2 := B). right. f_equal. f_equal.
    apply expectation_ext. intros p _. simpl. ring.
Qed.

(** ** For theorems with numbers *)

Lemma silent (V : space) : unbiased [(1, zero : V)] 0.
Proof.
  constructor; simpl; [ring|intros v; rewrite inner_zero; ring|].
  unfold square. rewrite inner_zero. lra.
Qed.

Lemma Q2R_whole z : Q2R (z # 1) = IZR z.
Proof. unfold Q2R. simpl. lra. Qed.

(** Say what a claim says, whose fields are numbers, in real numbers. *)
Ltac in_numbers H :=
  cbv beta iota delta [holds bounds covers heterogeneous participants local_steps most_eligible
    excluded_share q client_lr server_lr assist_lr smoothness convexity everywhere noisy
    descent rate gap decrease heterogeneity noise server_noise] in H;
  repeat match type of H with context [Q2R (?z # 1)] => rewrite (Q2R_whole z) in H end;
  repeat match type of H with context [Q2R (?z # ?p)] =>
    change (Q2R (z # p)) with (IZR z / IZR (Z.pos p)) in H
  end.
