(** CA-Fed's run on a Markov chain: the mean of the average of its models, round by round, and what
    the numbers of a setting are. *)

From Coq Require Import Reals QArith Qreals ZArith List Lra Lia Arith ConstructiveEpsilon.
From fltheory Require Import Space Round Draw Process Enclose Moments Refuted Chain Series.
Import ListNotations.
Open Scope R_scope.

Lemma Q2R_zero : Q2R 0 = 0. Proof. unfold Q2R. simpl. lra. Qed.
Lemma Q2R_one : Q2R 1 = 1. Proof. unfold Q2R. simpl. lra. Qed.

Lemma le_of x y : Qle_bool x y = true -> Q2R x <= Q2R y.
Proof. intros H. now apply Qle_Rle, Qle_bool_iff. Qed.

Lemma more_than x y : negb (Qle_bool x y) = true -> Q2R y < Q2R x.
Proof.
  intros H. apply Bool.negb_true_iff in H.
  destruct (Rlt_le_dec (Q2R y) (Q2R x)) as [|N]; [assumption|].
  apply Rle_Qle, Qle_bool_iff in N. congruence.
Qed.

Definition around (t : term) : interval :=
  match enclosed t with Some i => i | None => i_whole 0 end.
Definition is_enclosed (t : term) : bool := match enclosed t with Some _ => true | None => false
  end.

Lemma inside_around t x : x = value nameless t -> is_enclosed t = true -> inside x (around t).
Proof.
  unfold is_enclosed, around. intros -> E. destruct (enclosed t) eqn:H; [|discriminate].
  now apply enclosed_sound.
Qed.

Section Run.
Variable s : chain_setting.
Variables low high : Q.
Let n := n_clients s.
Let M := n_states s.
Let K := local_work s.
Let l := Q2R low.
Let h := Q2R high.
Let eta := step s.
Let theta := Q2R (server_step s).

(** Models stay between two numbers that lie in the ball. *)
Definition q_of (items : list Q) (i : nat) : Q := nth i items 0%Q.
Definition is_kept : bool :=
  forallb (fun i => Qle_bool 0 (q_of (curvatures s) i) && Qle_bool 0 (q_of (weights s) i)
    && Qle_bool low (q_of (minimisers s) i) && Qle_bool (q_of (minimisers s) i) high
    && Qle_bool (step_scale s * q_of (curvatures s) i) (1 + step_offset s)) (seq 0 n)
  && Qle_bool low (origin s) && Qle_bool (origin s) high
  && Qle_bool (ball_centre s - ball_radius s) low && Qle_bool high (ball_centre s + ball_radius s)
  && Qle_bool 0 (server_step s)
  && Qle_bool (server_step s * fold_right Qplus 0%Q (map (q_of (weights s)) (seq 0 n))) 1
  && Qle_bool 0 (step_scale s) && negb (Qle_bool (step_offset s) 0).

Hypothesis kept : is_kept = true.

Lemma fold_sum (f : nat -> Q) k : Q2R (fold_right Qplus 0%Q (map f (seq 0 k))) = sum k (fun i =>
  Q2R (f i)).
Proof.
  rewrite <- fold_seq. generalize (seq 0 k). intros items.
  induction items as [|i items IH]; simpl; [apply Q2R_zero|]. now rewrite Q2R_plus, IH.
Qed.

Lemma step_of t : (1 <= t)%nat -> eta t = Q2R (step_scale s) / (INR t + Q2R (step_offset s)).
Proof.
  intros L. unfold is_kept in kept. apply Bool.andb_true_iff in kept as [_ B].
  apply more_than in B. rewrite Q2R_zero in B. exact (step_is s B t).
Qed.

Lemma client i : (i < n)%nat -> 0 <= bend s i /\ 0 <= weight s i /\ l <= best s i <= h
  /\ Q2R (step_scale s) * bend s i <= 1 + Q2R (step_offset s).
Proof.
  intros L. unfold is_kept in kept. repeat (apply Bool.andb_true_iff in kept as [kept ?]).
  rewrite forallb_forall in kept. specialize (kept i ltac:(apply in_seq; lia)).
  repeat (apply Bool.andb_true_iff in kept as [kept ?]).
  repeat match goal with H : Qle_bool _ _ = true |- _ => apply le_of in H end.
  rewrite ?Q2R_plus, ?Q2R_mult, ?Q2R_zero, ?Q2R_one in *. unfold q_of in *.
  repeat split; assumption.
Qed.

Lemma whole_setting : l <= Q2R (origin s) <= h /\ middle s - radius s <= l
  /\ h <= middle s + radius s /\ 0 <= theta /\ theta * sum n (weight s) <= 1
  /\ 0 <= Q2R (step_scale s) /\ 0 < Q2R (step_offset s).
Proof.
  assert (B : 0 < Q2R (step_offset s)).
  { unfold is_kept in kept. apply Bool.andb_true_iff in kept as [_ B]. apply more_than in B.
    now rewrite Q2R_zero in B. }
  unfold is_kept in kept. do 8 (apply Bool.andb_true_iff in kept as [kept ?]).
  repeat match goal with H : Qle_bool _ _ = true |- _ => apply le_of in H end.
  rewrite ?Q2R_minus, ?Q2R_plus, ?Q2R_mult, ?Q2R_zero, ?Q2R_one in *. rewrite fold_sum in *.
  repeat split; assumption.
Qed.

(** What a client's local steps leave of its offset. *)
Definition left (t i : nat) : R := (1 - eta t * bend s i) ^ K.

Lemma left_between t i : (1 <= t)%nat -> (i < n)%nat -> 0 <= left t i <= 1.
Proof.
  intros T L. destruct (client i L) as (B & _ & _ & S).
  destruct whole_setting as (_ & _ & _ & _ & _ & A & O).
  assert (P : 1 <= INR t) by (apply (le_INR 1); exact T).
  assert (E : 0 <= eta t * bend s i <= 1).
  { rewrite step_of by exact T. unfold Rdiv.
    assert (V : 0 < / (INR t + Q2R (step_offset s))) by (apply Rinv_0_lt_compat; lra).
    split; [apply Rmult_le_pos; [apply Rmult_le_pos|]; lra|].
    apply (Rmult_le_reg_r (INR t + Q2R (step_offset s))); [lra|].
    replace (Q2R (step_scale s) * / (INR t + Q2R (step_offset s)) * bend s i
      * (INR t + Q2R (step_offset s))) with (Q2R (step_scale s) * bend s i) by (field; lra). lra. }
  unfold left. split; [apply pow_le; lra|].
  apply Rle_trans with (1 ^ K); [apply pow_incr; lra|rewrite pow1; lra].
Qed.

Lemma local_steps_of t i (x : R) : @eq R (local_sgd (V := line) (eta t)
    (exact_gradients (client_gradient s) i) K x) (x + (left t i - 1) * (x - best s i)).
Proof.
  unfold left. induction K as [|k IH].
  - change (@eq R x (x + (1 - 1) * (x - best s i))). ring.
  - cbn [local_sgd]. rewrite IH. set (q := 1 - eta t * bend s i).
    change (@eq R (x + (q ^ k - 1) * (x - best s i) + -1 * (eta t * (bend s i
        * (x + (q ^ k - 1) * (x - best s i) - best s i))))
      (x + (q * q ^ k - 1) * (x - best s i))). unfold q. ring.
Qed.

Definition slope (t a : nat) : R := 1 + theta * sum n (fun i =>
  if takes_part_in s a i then weight s i * (left t i - 1) else 0).
Definition shift (t a : nat) : R := - (theta * sum n (fun i =>
  if takes_part_in s a i then weight s i * (left t i - 1) * best s i else 0)).

Lemma round_is t a x : (1 <= t)%nat -> l <= x <= h ->
  weighted_round s t a x = slope t a * x + shift t a
  /\ l <= slope t a * x + shift t a <= h.
Proof.
  intros T X. set (pull := fun i => if takes_part_in s a i then weight s i * (1 - left t i) else 0).
  assert (P : forall i, (i < n)%nat -> 0 <= pull i <= weight s i).
  { intros i L. unfold pull. destruct (left_between t i T L), (client i L) as (_ & W & _).
    destruct (takes_part_in s a i); nra. }
  destruct whole_setting as (_ & Bl & Bh & Th & Wt & _).
  assert (E : slope t a * x + shift t a = x + theta * sum n (fun i => pull i * (best s i - x))).
  { unfold slope, shift. rewrite (sum_ext n (fun i => pull i * (best s i - x))
      (fun i => x * (if takes_part_in s a i then weight s i * (left t i - 1) else 0)
        + (-1) * (if takes_part_in s a i then weight s i * (left t i - 1) * best s i else 0))).
    - rewrite sum_add, !sum_scale. ring.
    - intros i _. unfold pull. destruct (takes_part_in s a i); ring. }
  assert (U : theta * sum n pull <= 1).
  { apply Rle_trans with (2 := Wt). apply Rmult_le_compat_l; [exact Th|].
    apply sum_le. intros i L. apply P. exact L. }
  assert (U0 : 0 <= sum n pull).
  { replace 0 with (sum n (fun _ => 0)) by (rewrite sum_const; ring).
    apply sum_le. intros i L. apply P. exact L. }
  assert (In : l <= slope t a * x + shift t a <= h).
  { rewrite E.
    assert (A : sum n pull * (l - x) <= sum n (fun i => pull i * (best s i - x))).
    { rewrite Rmult_comm, <- sum_scale. apply sum_le. intros i L.
      destruct (client i L) as (_ & _ & B & _). specialize (P i L). nra. }
    assert (C : sum n (fun i => pull i * (best s i - x)) <= sum n pull * (h - x)).
    { rewrite (Rmult_comm (sum n pull)), <- sum_scale. apply sum_le. intros i L.
      destruct (client i L) as (_ & _ & B & _). specialize (P i L). nra. }
    apply (Rmult_le_compat_l theta) in A, C; [|exact Th|exact Th].
    split; nra. }
  split; [|exact In].
  unfold weighted_round. fold theta n K. set (y := x + theta * _).
  assert (Y : y = slope t a * x + shift t a).
  { rewrite E. unfold y. do 2 f_equal. apply sum_ext. intros i _.
    unfold pull. destruct (takes_part_in s a i); [|ring].
    assert (Z := local_steps_of t i x). unfold eta, K in Z. unfold eta, K.
    etransitivity; [apply f_equal; apply (f_equal (fun v : R => v - x)); exact Z|]. ring. }
  rewrite Y. unfold nearest. destruct (Rle_dec _ _) as [|N]; [reflexivity|].
  exfalso. apply N. apply Rabs_le. lra.
Qed.

(** ** The law of the run *)

Hypothesis chain : is_stationary s.

Lemma expectation_row (A : Type) (p : nat -> R) (g : nat -> A) f k :
  expectation (map (fun b => (p b, g b)) (seq 0 k)) f = sum k (fun b => p b * f (g b)).
Proof.
  rewrite <- fold_seq. generalize (seq 0 k). intros items.
  induction items as [|b items IH]; simpl; [reflexivity|]. now rewrite IH.
Qed.

Definition mean_of (t : nat) (f : nat -> R -> R -> R) : R :=
  expectation (run s t) (fun z => let '(a, (x, total)) := z in f a x total).

Lemma mean_of_first f : mean_of 0 f = sum M (fun a => share s a * f a (Q2R (origin s)) 0).
Proof. unfold mean_of. cbn [run]. now rewrite expectation_row. Qed.

Lemma mean_of_next t f : mean_of (S t) f = mean_of t (fun a x total =>
  sum M (fun b => move s a b * f b (weighted_round s (S t) a x) (total + eta (S t) * x))).
Proof.
  unfold mean_of. cbn [run]. rewrite expectation_bind. apply expectation_same.
  intros [a [x total]]. now rewrite expectation_row.
Qed.

(** Whatever happens, the next state is one and the model is kept. *)
Lemma always t p a x total : In (p, (a, (x, total))) (run s t) -> (a < M)%nat /\ l <= x <= h.
Proof.
  revert p a x total. induction t as [|t IH]; cbn [run]; intros p a x total H.
  - apply in_map_iff in H as (b & E & B). apply in_seq in B. injection E as _ <- <- _.
    split; [lia|]. apply whole_setting.
  - unfold bind in H. apply in_flat_map in H as ([p' [a' [x' total']]] & H & N).
    apply in_map_iff in N as ([p'' z] & E & N). cbn [fst snd] in *.
    apply in_map_iff in N as (b & E' & B). apply in_seq in B.
    injection E as _ E. injection E' as _ E'. rewrite E in E'. injection E' as <- <- _.
    split; [lia|]. destruct (IH _ _ _ _ H) as [_ X].
    destruct (round_is (S t) a' x' ltac:(lia) X) as [-> Y]. exact Y.
Qed.

Lemma mean_ext t f g : (forall a x total, (a < M)%nat -> l <= x <= h -> f a x total = g a x total)
  ->
  mean_of t f = mean_of t g.
Proof.
  intros E. apply expectation_ext. intros [p [a [x total]]] H. cbn [snd].
  destruct (always _ _ _ _ _ H). now apply E.
Qed.

Lemma mean_add t f g :
  mean_of t (fun a x total => f a x total + g a x total) = mean_of t f + mean_of t g.
Proof.
  unfold mean_of. rewrite <- expectation_add. apply expectation_same. now intros [a [x total]].
Qed.

Lemma mean_scale t c f : mean_of t (fun a x total => c * f a x total) = c * mean_of t f.
Proof.
  unfold mean_of. rewrite <- expectation_scale. apply expectation_same. now intros [a [x total]].
Qed.

(** By the state: its probability, and the model's mean there. *)
Definition here (b a : nat) : R := if Nat.eqb a b then 1 else 0.
Definition chance (t b : nat) : R := mean_of t (fun a _ _ => here b a).
Definition part (t b : nat) : R := mean_of t (fun a x _ => here b a * x).
Definition gathered (t : nat) : R := mean_of t (fun _ _ total => total).

Lemma mean_sum t k (f : nat -> nat -> R -> R -> R) :
  mean_of t (fun a x total => sum k (fun b => f b a x total)) = sum k (fun b => mean_of t (f b)).
Proof.
  induction k as [|k IH]; simpl.
  - rewrite (mean_ext t _ (fun _ _ _ => 0 * 0)) by (intros; ring). rewrite mean_scale. ring.
  - now rewrite mean_add, IH.
Qed.

Lemma by_state t (f g : nat -> R) :
  mean_of t (fun a x _ => f a * x + g a) = sum M (fun b => f b * part t b + g b * chance t b).
Proof.
  unfold part, chance.
  rewrite (mean_ext t _ (fun a x _ => sum M (fun b => f b * (here b a * x) + g b * here b a))).
  - rewrite mean_sum. apply sum_ext. intros b _. now rewrite mean_add, !mean_scale.
  - intros a x _ A _. rewrite (sum_ext M _ (fun b => if Nat.eqb b a then f a * x + g a else 0)).
    + symmetry. exact (sum_delta M (fun _ => f a * x + g a) a A).
    + intros b _. unfold here. rewrite (Nat.eqb_sym a b).
    destruct (Nat.eqb_spec b a); [subst|]; ring.
Qed.

Lemma only_here b (f : nat -> R) : (b < M)%nat -> sum M (fun k => f k * here b k) = f b.
Proof.
  intros B. rewrite (sum_ext M _ (fun k => if Nat.eqb k b then f b else 0)).
  - exact (sum_delta M (fun _ => f b) b B).
  - intros k _. unfold here. destruct (Nat.eqb_spec k b); [subst|]; ring.
Qed.

Lemma chance_stays t b : (b < M)%nat -> chance t b = share s b.
Proof.
  destruct chain as (_ & _ & _ & _ & St). revert b. induction t as [|t IH]; intros b B.
  - unfold chance. rewrite mean_of_first. now rewrite only_here.
  - unfold chance. rewrite mean_of_next.
    rewrite (mean_ext t _ (fun a x _ => 0 * x + move s a b)).
    + rewrite by_state, <- (St b B). apply sum_ext. intros a A. rewrite IH by exact A. ring.
    + intros a x _ _ _. rewrite (only_here b (move s a) B). ring.
Qed.

Lemma part_next t b : (b < M)%nat -> part (S t) b = sum M (fun a =>
  move s a b * (slope (S t) a * part t a + shift (S t) a * share s a)).
Proof.
  intros B. unfold part at 1. rewrite mean_of_next.
  rewrite (mean_ext t _ (fun a x _ => move s a b * slope (S t) a * x + move s a b * shift (S t) a)).
  - rewrite by_state. apply sum_ext. intros a A. rewrite chance_stays by exact A. ring.
  - intros a x _ _ X. destruct (round_is (S t) a x ltac:(lia) X) as [-> _].
    rewrite (sum_ext M _ (fun k => (move s a k * (slope (S t) a * x + shift (S t) a)) * here b k))
      by (intros; ring).
    rewrite (only_here b (fun k => move s a k * (slope (S t) a * x + shift (S t) a)) B). ring.
Qed.

Lemma gathered_next t :
  gathered (S t) = gathered t + eta (S t) * sum M (fun a => part t a).
Proof.
  destruct chain as (_ & _ & _ & One & _). unfold gathered at 1. rewrite mean_of_next.
  rewrite (mean_ext t _ (fun a x total => total + (eta (S t) * x + 0))).
  - rewrite mean_add, (by_state t (fun _ => eta (S t)) (fun _ => 0)), <- sum_scale. f_equal.
    apply sum_ext. intros. ring.
  - intros a x total A _. rewrite (sum_ext M _ (fun b => (total + eta (S t) * x) * move s a b))
      by (intros; ring). rewrite sum_scale, One by exact A. ring.
Qed.

Lemma certain t : mean_of t (fun _ _ _ => 1) = 1.
Proof.
  destruct chain as (_ & One & _).
  rewrite (mean_ext t _ (fun _ x _ => 0 * x + 1)) by (intros; ring).
  rewrite by_state. rewrite (sum_ext M _ (share s)); [exact One|].
  intros b B. rewrite chance_stays by exact B. ring.
Qed.

Lemma chances t o : In o (run s t) -> 0 <= fst o.
Proof.
  destruct chain as (Share & _ & Move & _). revert o.
  induction t as [|t IH]; cbn [run]; intros o H.
  - apply in_map_iff in H as (b & <- & B). apply in_seq in B. apply Share. fold M. lia.
  - unfold bind in H. apply in_flat_map in H as ([p' [a' [x' total']]] & H & N).
    apply in_map_iff in N as (o' & <- & N). apply in_map_iff in N as (b & <- & B).
    apply in_seq in B.
    cbn [fst snd]. assert (P := IH _ H). destruct (always _ _ _ _ _ H) as [A _].
    apply Rmult_le_pos; [exact P|]. apply Move; fold M; [exact A|lia].
Qed.

Lemma mean_nonneg t f : (forall a x total, 0 <= f a x total) -> 0 <= mean_of t f.
Proof.
  intros F. rewrite <- (expectation_zero (run s t)). apply expectation_le; [exact (chances t)|].
  intros [a [x total]]. apply F.
Qed.

(** ** A chain without memory, in intervals *)

Definition average_model (t : nat) : R := sum M (part t).
Definition is_memoryless : bool := forallb (fun a => forallb (fun b =>
  Qeq_bool (q_of (nth a (transition s) []) b) (q_of (stationary s) b)) (seq 0 M)) (seq 0 M).
Hypothesis memoryless : is_memoryless = true.

Lemma move_is a b : (a < M)%nat -> (b < M)%nat -> move s a b = share s b.
Proof.
  intros A B. unfold is_memoryless in memoryless. rewrite forallb_forall in memoryless.
  specialize (memoryless a ltac:(apply in_seq; lia)). rewrite forallb_forall in memoryless.
  specialize (memoryless b ltac:(apply in_seq; lia)). now apply Qeq_eqR, Qeq_bool_iff.
Qed.

Lemma part_is t b : (b < M)%nat -> part t b = share s b * average_model t.
Proof.
  destruct chain as (_ & One & _). fold M in One.
  assert (H : forall f : nat -> R, (forall b, (b < M)%nat -> part t b = share s b * f t) ->
    forall b, (b < M)%nat -> part t b = share s b * average_model t).
  { intros f F a A. rewrite (F a A). unfold average_model. rewrite (sum_ext M _ _ F).
    rewrite (sum_ext M _ (fun k => f t * share s k)) by (intros; ring). rewrite sum_scale, One.
    ring. }
  destruct t as [|t].
  - apply (H (fun _ => Q2R (origin s))). intros a A. unfold part. rewrite mean_of_first.
    rewrite (sum_ext M _ (fun k => share s k * Q2R (origin s) * here a k)) by (intros; ring).
    exact (only_here a (fun k => share s k * Q2R (origin s)) A).
  - apply (H (fun _ => sum M (fun a => slope (S t) a * part t a + shift (S t) a * share s a))).
    intros a A. rewrite part_next, <- sum_scale by exact A. apply sum_ext. intros k L.
    now rewrite (move_is k a L A).
Qed.

Definition pull (t i : nat) : R := theta * (availability s i * weight s i) * (1 - left t i).

(** Everybody's pull, where each client is there with its own probability. *)
Lemma of_states (f : nat -> R) :
  sum M (fun a => share s a * sum n (fun i => if takes_part_in s a i then f i else 0))
  = sum n (fun i => availability s i * f i).
Proof.
  rewrite (sum_ext M _ (fun a => sum n (fun i =>
    f i * (if takes_part_in s a i then share s a else 0)))).
  - rewrite sum_swap. apply sum_ext. intros i _. rewrite sum_scale. unfold availability. fold M.
  ring.
  - intros a _. rewrite <- sum_scale. apply sum_ext. intros i _.
    destruct (takes_part_in s a i); ring.
Qed.

Lemma average_next t : average_model (S t) = (1 + - sum n (pull (S t))) * average_model t
  + sum n (fun i => pull (S t) i * best s i).
Proof.
  destruct chain as (_ & One & _). fold M in One. set (m := average_model t).
  unfold average_model. rewrite (sum_ext M _ (fun b => sum M (fun a =>
    share s b * (slope (S t) a * part t a + shift (S t) a * share s a)))).
  2: { intros b B. rewrite part_next by exact B. apply sum_ext. intros a A. now rewrite move_is. }
  rewrite (sum_ext M _ (fun b => sum M (fun a => slope (S t) a * part t a
    + shift (S t) a * share s a) * share s b)) by (intros; rewrite sum_scale; ring).
  rewrite sum_scale, One, Rmult_1_r.
  rewrite (sum_ext M _ (fun a => m * share s a
    + (m * theta * (share s a * sum n (fun i => if takes_part_in s a i
        then weight s i * (left (S t) i - 1) else 0))
    + - theta * (share s a * sum n (fun i => if takes_part_in s a i
        then weight s i * (left (S t) i - 1) * best s i else 0))))).
  - rewrite !sum_add, !sum_scale, One, !of_states. unfold pull.
    rewrite (sum_ext n (fun i => theta * (availability s i * weight s i) * (1 - left (S t) i))
      (fun i => - theta * (availability s i * (weight s i * (left (S t) i - 1))))) by (intros;
        ring).
    rewrite (sum_ext n (fun i => theta * (availability s i * weight s i) * (1 - left (S t) i) *
      best s i)
      (fun i => - theta * (availability s i * (weight s i * (left (S t) i - 1) * best s i))))
      by (intros; ring).
    rewrite !sum_scale. ring.
  - intros a A. rewrite part_is by exact A. fold m. unfold slope, shift. ring.
Qed.

Definition t_availability (i : nat) : term := t_sum M (fun a =>
  if takes_part_in s a i then Number (q_of (stationary s) a) else Whole 0).
Definition t_weight (i : nat) : term := Times (t_availability i) (Number (q_of (weights s) i)).

Lemma weight_is e i : value e (t_weight i) = availability s i * weight s i.
Proof.
  unfold t_weight, t_availability. cbn [value]. rewrite value_sum.
  unfold availability. f_equal. apply sum_ext. intros a _. now destruct (takes_part_in s a i).
Qed.

(** What rounds are made of, and the run's means. *)
Record tables := { i_weights : list interval; i_bends : list interval; i_bests : list interval }.
Definition t_step_weight (i : nat) : term := Times (Number (server_step s)) (t_weight i).
Record row := { at_time : Z; i_model : interval; i_gathered : interval; i_steps : interval }.

Definition at_client (items : list interval) (i : nat) : interval := nth i items (i_whole 0).
Definition of_clients (f : nat -> interval) : list interval := map f (seq 0 n).

Definition next_row (w : tables) (z : row) : row :=
  let e := i_step s (at_time z + 1) in
  let left i := i_power (i_plus (i_whole 1) (i_opposite (i_times e (at_client (i_bends w) i)))) K in
  let pulls := of_clients (fun i => i_times (at_client (i_weights w) i)
    (i_plus (i_whole 1) (i_opposite (left i)))) in
  {| at_time := at_time z + 1;
     i_model := i_plus
       (i_times (i_plus (i_whole 1) (i_opposite (i_sum n (at_client pulls)))) (i_model z))
       (i_sum n (fun i => i_times (at_client pulls i) (at_client (i_bests w) i)));
     i_gathered := i_plus (i_gathered z) (i_times e (i_model z));
     i_steps := i_plus (i_steps z) e |}.

Fixpoint rows (w : tables) (T : nat) : row :=
  match T with
  | O => {| at_time := 0; i_model := i_number (origin s); i_gathered := i_whole 0;
            i_steps := i_whole 0 |}
  | S k => next_row w (rows w k)
  end.

Lemma at_of_clients f i : (i < n)%nat -> at_client (of_clients f) i = f i.
Proof.
  intros L. unfold at_client, of_clients.
  rewrite (nth_indep _ _ (f 0%nat)) by (rewrite map_length, seq_length; exact L).
  now rewrite map_nth, seq_nth by exact L.
Qed.

Definition the_tables : tables := {|
  i_weights := of_clients (fun i => around (t_step_weight i));
  i_bends := of_clients (fun i => i_number (q_of (curvatures s) i));
  i_bests := of_clients (fun i => i_number (q_of (minimisers s) i)) |}.
Definition are_enclosed : bool := forallb (fun i => is_enclosed (t_step_weight i)) (seq 0 n).

Lemma rows_followed T : are_enclosed = true -> let z := rows the_tables T in at_time z = Z.of_nat T
  /\ inside (average_model T) (i_model z) /\ inside (gathered T) (i_gathered z)
  /\ inside (step_sum s T) (i_steps z).
Proof.
  intros W. cbv zeta. unfold are_enclosed in W. rewrite forallb_forall in W.
  destruct whole_setting as (_ & _ & _ & _ & _ & _ & Pos).
  destruct chain as (_ & One & _). fold M in One.
  induction T as [|t (At & P & G & S)]; cbn [rows at_time i_model i_gathered i_steps].
  - split; [reflexivity|split; [|split; [|exact (inside_whole 0)]]].
    + unfold average_model, part. rewrite (sum_ext M _ (fun a => Q2R (origin s) * share s a)).
      * rewrite sum_scale, One, Rmult_1_r. apply inside_number.
      * intros a A. rewrite mean_of_first, (sum_ext M _ (fun k => share s k * Q2R (origin s)
          * here a k)) by (intros; ring).
        rewrite (only_here a (fun k => share s k * Q2R (origin s)) A). ring.
    + unfold gathered. rewrite mean_of_first, (sum_ext M _ (fun _ => 0)), sum_const by (intros;
      ring).
      rewrite Rmult_0_r. exact (inside_whole 0).
  - set (z := rows the_tables t) in *. unfold next_row. cbn [at_time i_model i_gathered i_steps].
    assert (E : inside (eta (Datatypes.S t)) (i_step s (at_time z + 1))).
    { rewrite At. replace (Z.of_nat t + 1)%Z with (Z.of_nat (Datatypes.S t)) by lia.
      exact (inside_step s Pos (Datatypes.S t)). }
    set (e := i_step s (at_time z + 1)) in *. set (pulls := of_clients _).
    assert (Pull : forall i, (i < n)%nat -> inside (pull (Datatypes.S t) i) (at_client pulls i)).
    { intros i L. unfold pulls, the_tables. cbn [i_weights i_bends].
      rewrite !at_of_clients by exact L. apply inside_times.
      - apply inside_around; [unfold t_step_weight; cbn [value]; now rewrite weight_is|].
        apply W, in_seq. lia.
      - apply inside_plus; [exact (inside_whole 1)|]. apply inside_opposite, inside_power.
        apply inside_plus; [exact (inside_whole 1)|].
        apply inside_opposite, inside_times; [exact E|].
        apply inside_number. }
    split; [rewrite At; lia|split; [|split; [|exact (inside_plus _ _ _ _ S E)]]].
    + rewrite average_next. apply inside_plus.
      * apply inside_times; [|exact P]. apply inside_plus; [exact (inside_whole 1)|].
        apply inside_opposite. now apply i_sum_sound.
      * apply i_sum_sound. intros i L.
        apply inside_times; [now apply Pull|]. unfold the_tables. cbn [i_bests].
        rewrite at_of_clients by exact L. apply inside_number.
    + rewrite gathered_next. apply inside_plus; [exact G|]. now apply inside_times.
Qed.

(** ** Objectives *)

Section Objective.
Variables (p : nat -> R) (t_p : nat -> term).
Hypothesis p_is : forall i, (i < n)%nat -> value nameless (t_p i) = p i.

Definition objective (x : R) : R := sum n (fun i => p i * client_loss s i x).
Definition t_bend : term := t_sum n (fun i => Times (t_p i) (Number (q_of (curvatures s) i))).
Definition t_pull_at (y : Q) : term := t_sum n (fun i => Times (t_p i)
  (Times (Number (q_of (curvatures s) i)) (Less (Number y) (Number (q_of (minimisers s) i))))).
Definition is_least_at (y : Q) : bool :=
  compared Qeq_bool (t_pull_at y) (Whole 0) && compared Qle_bool (Whole 0) t_bend.

Lemma objective_from x y : is_least_at y = true ->
  0 <= value nameless t_bend
  /\ objective x - objective (Q2R y)
     = value nameless t_bend / 2 * ((x - Q2R y) * (x - Q2R y)).
Proof.
  intros E. apply Bool.andb_true_iff in E as [E P].
  apply (equal_sound nameless) in E. apply (not_above_sound nameless) in P. cbn [value] in *.
  split; [exact P|]. unfold t_pull_at in E. rewrite value_sum in E.
  assert (D : objective x - objective (Q2R y) = sum n (fun i =>
    (x - Q2R y) * (x - Q2R y) / 2 * (p i * bend s i)
    + (x - Q2R y) * (p i * (bend s i * (Q2R y - best s i))))).
  { assert (Less : forall u v, sum n u - sum n v = sum n (fun i => u i + -1 * v i))
      by (intros; rewrite sum_add, sum_scale; ring).
    unfold objective. rewrite Less. apply sum_ext. intros i _. unfold client_loss. field. }
  rewrite D, sum_add, !sum_scale. unfold t_bend. rewrite value_sum.
  rewrite (sum_ext n (fun i => p i * (bend s i * (Q2R y - best s i))) (fun i => value nameless
    (Times (t_p i) (Times (Number (q_of (curvatures s) i))
      (Less (Number y) (Number (q_of (minimisers s) i))))))), E.
  - rewrite (sum_ext n (fun i => p i * bend s i) (fun i => value nameless
      (Times (t_p i) (Number (q_of (curvatures s) i))))); [cbn [value]; field|].
    intros i L. cbn [value]. now rewrite p_is.
  - intros i L. cbn [value]. now rewrite p_is.
Qed.

Theorem least_at y : is_least_at y = true -> forall x, objective (Q2R y) <= objective x.
Proof.
  intros E x. destruct (objective_from x y E) as [P D].
  assert (S := Rle_0_sqr (x - Q2R y)). unfold Rsqr in S. nra.
Qed.

End Objective.

Definition t_biased (i : nat) : term := Over (t_weight i) (t_sum n t_weight).
Definition t_equal (i : nat) : term := Over (Whole 1) (Count n).

Lemma biased_is e i :
  value e (t_biased i) = availability s i * weight s i / mean_weight s.
Proof.
  unfold t_biased. cbn [value]. rewrite weight_is, value_sum. f_equal.
  unfold mean_weight. apply sum_ext. intros j _. apply weight_is.
Qed.

Theorem biased_least y : is_least_at t_biased y = true ->
  forall x, biased_objective s (Q2R y) <= biased_objective s x.
Proof. apply (least_at _ t_biased (fun i _ => biased_is nameless i)). Qed.

Theorem true_least y : is_least_at t_equal y = true ->
  forall x, true_objective s (Q2R y) <= true_objective s x.
Proof. apply (least_at (fun _ => 1 / INR n) t_equal (fun i _ => eq_refl)). Qed.

(** What is expected at the average is not negative; of a chain without memory, it is found from
    the average's mean alone, as a square is above each of its tangents. *)
Definition t_gain (xb slope : Q) : term := Times (Over (t_bend t_biased) (Whole 2))
  (Times (Number slope) (Less (Times (Whole 2) (Less (Named 0) (Number xb))) (Number slope))).
Definition is_above (T : nat) (xb slope : Q) (truth : term) : bool :=
  let z := rows the_tables T in
  are_enclosed && (0 <? fst (i_steps z))%Z && is_least_at t_biased xb
  && (let known := i_times (i_gathered z) (inverted (i_steps z)) in
      i_at_most (range (fun _ => known) truth) (range (fun _ => known) (t_gain xb slope))).

Lemma not_negative (T : nat) (xb : Q) : is_least_at t_biased xb = true ->
  0 <= at_average s T (fun x => biased_objective s x - biased_objective s (Q2R xb)).
Proof.
  intros E. apply (mean_nonneg T (fun _ _ total => biased_objective s (total / step_sum s T)
    - biased_objective s (Q2R xb))). intros _ _ total.
  assert (H := least_at _ t_biased (fun i _ => biased_is nameless i) xb E (total / step_sum s T)).
  apply Rge_le, Rge_minus, Rle_ge. exact H.
Qed.

Theorem above (T : nat) (xb slope : Q) (truth : term) :
  is_above T xb slope truth = true -> exists m,
  value (fun _ => m) truth
  <= at_average s T (fun x => biased_objective s x - biased_objective s (Q2R xb)).
Proof.
  unfold is_above. intros E. apply Bool.andb_true_iff in E as [E A].
  apply Bool.andb_true_iff in E as [S E]. apply Bool.andb_true_iff in S as [W S].
  apply Z.ltb_lt in S. destruct (rows_followed T W) as (_ & _ & G & I).
  set (m := gathered T * / step_sum s T). exists m.
  assert (In : inside m (i_times (i_gathered (rows the_tables T)) (inverted (i_steps (rows
    the_tables T)))))
    by (apply inside_times; [exact G|now apply inside_inverted]).
  apply (at_most_sound (fun _ => m) _ (fun _ => In)) in A. apply Rle_trans with (1 := A).
  change (at_average s T (fun x => biased_objective s x - biased_objective s (Q2R xb)))
    with (mean_of T (fun _ _ total => biased_objective s (total / step_sum s T)
      - biased_objective s (Q2R xb))).
  set (S1 := step_sum s T) in *. set (x := Q2R xb).
  destruct (objective_from _ t_biased (fun i _ => biased_is nameless i) 0 xb E) as [P _].
  set (B := value nameless (t_bend t_biased)) in P.
  assert (B_is : value (fun _ => m) (t_bend t_biased) = B).
  { unfold B, t_bend. rewrite !value_sum. apply sum_ext. intros i _. cbn [value].
    now rewrite !biased_is. }
  rewrite (mean_ext T _ (fun _ _ total => B / 2 * ((total / S1 - x - Q2R slope) ^ 2)
    + (B * Q2R slope / S1 * total + (- (B / 2 * Q2R slope * (2 * x + Q2R slope))) * 1))).
  - rewrite !mean_add, !mean_scale, certain. fold (gathered T).
    assert (N : 0 <= mean_of T (fun _ _ total => (total / S1 - x - Q2R slope) ^ 2))
      by (apply mean_nonneg; intros; apply pow2_ge_0).
    unfold t_gain. cbn [value]. rewrite B_is. fold x.
    replace (B / 2 * (Q2R slope * (2 * (m - x) - Q2R slope)))
      with (B * Q2R slope / S1 * gathered T + - (B / 2 * Q2R slope * (2 * x + Q2R slope)) * 1)
      by (unfold m, Rdiv; fold S1; generalize (/ S1); intros; field).
    assert (0 <= B / 2 * mean_of T (fun _ _ total => (total / S1 - x - Q2R slope) ^ 2))
      by (apply Rmult_le_pos; lra). lra.
  - intros _ _ total _ _. unfold x.
    destruct (objective_from _ t_biased (fun i _ => biased_is nameless i) (total / S1) xb E) as [_
      D].
    etransitivity; [exact D|]. fold B x. unfold Rdiv. generalize (/ S1). intros. field.
Qed.

End Run.

(** ** The bound *)

Definition span (low high : Q) : interval := (fst (i_number low), snd (i_number high)).

Lemma inside_span x low high : Q2R low <= x -> x <= Q2R high -> inside x (span low high).
Proof.
  intros A B. assert (C := proj1 (inside_number low)). assert (D := proj2 (inside_number high)).
  assert (U := unit_positive). unfold inside, span. cbn [fst snd].
  split; [apply Rle_trans with (1 := C)|apply Rle_trans with (2 := D)]; apply Rmult_le_compat_r;
    lra.
Qed.

Lemma inside_rational x q : x = Q2R q -> inside x (i_number q).
Proof. intros ->. apply inside_number. Qed.

Lemma inside_log k x y low high : inside x y ->
  (0 <? fst y)%Z && ln_above k y low && ln_below k y high = true -> inside (ln x) (span low high).
Proof.
  intros I E. apply Bool.andb_true_iff in E as [E B]. apply Bool.andb_true_iff in E as [P A].
  apply Z.ltb_lt in P. assert (X := inside_positive _ _ I P).
  apply inside_span; [now apply (ln_above_sound k x y)|now apply (ln_below_sound k x y)].
Qed.

Lemma inside_steps s low high T : is_kept s low high = true ->
  inside (step_sum s T) (i_sum T (fun k => i_step s (Z.of_nat (S k)))).
Proof.
  intros E. apply Bool.andb_true_iff in E as [_ E]. apply more_than in E. rewrite Q2R_zero in E.
  apply i_sum_sound. intros k _. now apply inside_step.
Qed.

Lemma delays c lambda : 0 < c -> 0 < lambda < 1 -> exists delay, forall t, (1 <= t)%nat ->
  least (fun m => c * INR t * lambda ^ m <= 1) (delay t).
Proof.
  intros C L.
  assert (D : forall t, {m | (1 <= t)%nat -> least (fun m => c * INR t * lambda ^ m <= 1) m}).
  { intros t. destruct (le_lt_dec 1 t) as [T|T]; [|exists 0%nat; lia].
    destruct (epsilon_smallest (fun m => c * INR t * lambda ^ m <= 1)) as [m [P Q]].
    - intros m. apply Rle_dec.
    - assert (X : 0 < c * INR t) by (apply Rmult_lt_0_compat; [exact C|apply lt_0_INR; lia]).
      destruct (pow_lt_1_zero lambda ltac:(rewrite Rabs_right; lra) (/ (c * INR t))
        ltac:(now apply Rinv_0_lt_compat)) as [m P].
      exists m. specialize (P m (le_n m)). rewrite Rabs_right in P by (apply Rle_ge, pow_le; lra).
      apply Rle_trans with (c * INR t * / (c * INR t)); [|right; apply Rinv_r; lra].
      apply Rmult_le_compat_l; lra.
    - exists m. intros _. now split. }
  exists (fun t => proj1_sig (D t)). intros t. exact (proj2_sig (D t)).
Qed.

(** What is around the four sums and other numbers, and whether the bound is below a number. *)
Definition known_of (s : chain_setting) (n : nat) (gamma e log : Q) (x : sums) (rest : list
  interval)
    (k : nat) : interval :=
  nth k ([i_inverse_squares n x; i_squares s n e x; i_delayed_logs s n gamma e log x;
    i_delayed_squares s n gamma e x] ++ rest) (i_whole 0).
Definition is_below (s : chain_setting) (i_c : interval) (lambda ln_2 : Q) (n w : nat) (gamma e log
  : Q)
    (rest : list interval) (bound number : term) : bool :=
  (0 <? fst i_c)%Z && negb (Qle_bool lambda 0) && negb (Qle_bool 1 lambda)
  && negb (Qle_bool (step_scale s) 0) && negb (Qle_bool (step_offset s) 0)
  && ln_below 20 (i_whole 2) ln_2
  && match first_terms s i_c lambda ln_2 n with
     | Some x => is_bounded s lambda n w gamma e log x
         && (let known := known_of s n gamma e log x rest in i_at_most (range known bound) (range
           known number))
     | None => false
     end.

Theorem below s c lambda i_c q ln_2 n w gamma e log reals rest bound number :
  inside c i_c -> lambda = Q2R q -> Forall2 inside reals rest ->
  is_below s i_c q ln_2 n w gamma e log rest bound number = true ->
  exists delay S_0 S_2 Y_0 Y_1,
  (forall t, (1 <= t)%nat -> least (fun m => c * INR t * lambda ^ m <= 1) (delay t))
  /\ sums_to (fun t => (/ INR t) ^ 2) S_0
  /\ sums_to (fun t => step s t ^ 2) S_2
  /\ sums_to (fun t => ln (INR t) * delayed_step s delay t ^ 2) Y_0
  /\ sums_to (fun t => delayed_step s delay t ^ 2) Y_1
  /\ let names := fun k => nth k ([S_0; S_2; Y_0; Y_1] ++ reals) 0 in
     value names bound <= value names number.
Proof.
  intros C -> F E. unfold is_below in E. repeat (apply Bool.andb_true_iff in E as [E ?]).
  repeat match goal with H : negb _ = true |- _ => apply more_than in H end.
  rewrite ?Q2R_zero, ?Q2R_one in *. apply Z.ltb_lt in E.
  match goal with H : ln_below _ _ _ = true |- _ =>
    apply (ln_below_sound 20 2 (i_whole 2) ln_2 (inside_whole 2) ltac:(lra)) in H;
      rename H into Two end.
  destruct (first_terms s i_c q ln_2 n) as [x|] eqn:X; [|discriminate].
  match goal with H : (is_bounded _ _ _ _ _ _ _ _ && _)%bool = true |- _ =>
    apply Bool.andb_true_iff in H as [B A] end.
  assert (P := inside_positive _ _ C E).
  destruct (delays c (Q2R q) P ltac:(lra)) as [delay Least].
  destruct (sums_enclosed s c i_c q ln_2 C Two P ltac:(assumption) ltac:(assumption)
    ltac:(assumption) delay Least n w gamma e log x X B) as (S_0 & S_2 & Y_0 & Y_1 & (S0 & I0) &
      (S2 & I2) & (Y0 & J0) & (Y1 & J1)).
  exists delay, S_0, S_2, Y_0, Y_1. repeat split; try assumption; try (now apply Least).
  cbv zeta in A. cbv zeta.
  apply (at_most_sound (fun k => nth k ([S_0; S_2; Y_0; Y_1] ++ reals) 0)) in A; [exact A|].
  intros k. unfold known_of.
  assert (All : Forall2 inside ([S_0; S_2; Y_0; Y_1] ++ reals)
    ([i_inverse_squares n x; i_squares s n e x; i_delayed_logs s n gamma e log x;
      i_delayed_squares s n gamma e x] ++ rest)) by (do 4 (constructor; [assumption|]); exact F).
  revert k. induction All as [|a b l l' H _ IH]; intros [|k]; cbn [nth];
    try (apply (inside_whole 0));
    [exact H|apply IH].
Qed.

(** ** A setting's own numbers *)

Section Numbers.
Variable s : chain_setting.
Let n := n_clients s.

Lemma smooth_clients_of L : (forall i, (i < n)%nat -> 0 <= bend s i <= L) ->
  forall i, (i < n)%nat -> smooth L (client_loss s i) (client_gradient s i).
Proof.
  intros B i I x y. specialize (B i I). unfold client_loss, client_gradient.
  set (h := bend s i) in *. set (c := best s i).
  change ((h * (x - c) + -1 * (h * (y - c))) * (h * (x - c) + -1 * (h * (y - c)))
      <= L * L * ((x + -1 * y) * (x + -1 * y))
    /\ Rabs (h / 2 * ((x - c) * (x - c)) - h / 2 * ((y - c) * (y - c))
        - h * (y - c) * (x + -1 * y)) <= L / 2 * ((x + -1 * y) * (x + -1 * y))).
  assert (Q := Rle_0_sqr (x - y)). unfold Rsqr in Q.
  replace (x + -1 * y) with (x - y) by (simpl; ring).
  split; [|apply Rabs_le; nra].
  replace ((h * (x - c) + -1 * (h * (y - c))) * (h * (x - c) + -1 * (h * (y - c))))
    with (h * h * ((x - y) * (x - y))) by (simpl; ring).
  apply Rmult_le_compat_r; [exact Q|nra].
Qed.

Lemma convex_clients_of mu : (forall i, (i < n)%nat -> mu <= bend s i) ->
  forall i, (i < n)%nat -> strongly_convex mu (client_loss s i) (client_gradient s i).
Proof.
  intros B i I x y. specialize (B i I). unfold client_loss, client_gradient.
  set (h := bend s i) in *. set (c := best s i).
  change (h / 2 * ((y - c) * (y - c)) + h * (y - c) * (x + -1 * y)
    + mu / 2 * ((x + -1 * y) * (x + -1 * y)) <= h / 2 * ((x - c) * (x - c))).
  assert (Q := Rle_0_sqr (x - y)). unfold Rsqr in Q. nra.
Qed.

(** Suprema over W are those at its ends. *)
Definition farthest (i : nat) : R := Rabs (best s i - middle s) + radius s.

Lemma offset_in_W i x : within s x -> Rabs (x - best s i) <= farthest i.
Proof.
  unfold within, farthest. intros W. replace (x - best s i)
    with ((x - middle s) + - (best s i - middle s)) by ring.
  assert (T := Rabs_triang (x - middle s) (- (best s i - middle s))). rewrite Rabs_Ropp in T. lra.
Qed.

Lemma largest_gradient D k y : (k < n)%nat -> within s y -> D = Rabs (client_gradient s k y) ->
  (forall i, (i < n)%nat -> 0 <= bend s i /\ bend s i * farthest i <= D) ->
  is_lub (among_clients_in_W s (fun i x => Rabs (client_gradient s i x))) D.
Proof.
  intros K Y E B. split.
  - intros v (i & x & I & W & ->). destruct (B i I) as [P Q]. unfold client_gradient.
    rewrite Rabs_mult, (Rabs_right (bend s i)) by lra. apply offset_in_W with (i := i) in W.
    apply Rle_trans with (2 := Q). apply Rmult_le_compat_l; [exact P|exact W].
  - intros u U. apply U. exists k, y. now repeat split.
Qed.

Lemma largest_change H w k y : (k < n)%nat -> within s y ->
  H = Rabs (client_loss s k y - client_loss s k w) ->
  (forall i, (i < n)%nat -> 0 <= bend s i
    /\ bend s i / 2 * (farthest i * farthest i) - client_loss s i w <= H
    /\ client_loss s i w <= H) ->
  is_lub (among_clients_in_W s (fun i x => Rabs (client_loss s i x - client_loss s i w))) H.
Proof.
  intros K Y E B. split.
  - intros v (i & x & I & W & ->). destruct (B i I) as (P & Q & T). unfold client_loss at 1.
    apply offset_in_W with (i := i) in W. assert (A := Rabs_pos (x - best s i)).
    assert (S : (x - best s i) * (x - best s i) <= farthest i * farthest i).
    { replace ((x - best s i) * (x - best s i)) with (Rabs (x - best s i) * Rabs (x - best s i)).
      - apply Rmult_le_compat; lra.
      - rewrite <- Rabs_mult. apply Rabs_right, Rle_ge, Rle_0_sqr. }
    assert (Z := Rle_0_sqr (x - best s i)). unfold Rsqr in Z.
    assert (0 <= bend s i / 2 * ((x - best s i) * (x - best s i))) by (apply Rmult_le_pos; lra).
    assert (bend s i / 2 * ((x - best s i) * (x - best s i))
      <= bend s i / 2 * (farthest i * farthest i)) by (apply Rmult_le_compat_l; lra).
    apply Rabs_le. lra.
  - intros u U. apply U. exists k, y. now repeat split.
Qed.

Lemma reach_below points rho : 0 < rho -> Forall (fun p => Rabs (p - middle s) < rho) points ->
  reach s points < rho.
Proof.
  intros P. unfold reach. induction 1; simpl; [exact P|]. now apply Rmax_lub_lt.
Qed.

Lemma reach_at_most points rho : 0 <= rho -> Forall (fun p => Rabs (p - middle s) <= rho) points ->
  reach s points <= rho.
Proof.
  intros P. unfold reach. induction 1; simpl; [exact P|]. now apply Rmax_lub.
Qed.

End Numbers.

Lemma root_is x d : x = d * d -> 0 <= d -> sqrt x = d.
Proof. intros ->. apply sqrt_square. Qed.

(** ** Tactics for a setting's own numbers *)

Fixpoint each_below (n : nat) (P : nat -> Prop) : Prop :=
  match n with O => True | S k => each_below k P /\ P k end.

Lemma all_below n P : each_below n P -> forall i, (i < n)%nat -> P i.
Proof.
  induction n as [|n IH]; intros E i L; [lia|]. destruct E as [E H].
  destruct (Nat.eq_dec i n) as [->|N]; [exact H|]. apply IH; [exact E|lia].
Qed.

Ltac in_numbers := cbv -[Rplus Rmult Ropp Rinv Rminus Rdiv IZR Rle Rlt Rabs sqrt Rmax ln].
Ltac by_numbers := in_numbers; repeat (unfold Rmax; destruct (Rle_dec _ _));
  repeat (unfold Rabs in *; destruct (Rcase_abs _)); lra.

Lemma all_pairs n m (P : nat -> nat -> Prop) : each_below n (fun a => each_below m (P a)) ->
  forall a b, (a < n)%nat -> (b < m)%nat -> P a b.
Proof. intros E a b A B. exact (all_below m (P a) (all_below n _ E a A) b B). Qed.

Ltac by_conjuncts := in_numbers; repeat split; repeat (unfold Rabs in *; destruct (Rcase_abs _));
  lra.
Ltac by_states := first [apply all_pairs | apply all_below | idtac]; by_conjuncts.
