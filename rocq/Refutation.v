(** What a refutation says, and its quantities as sums over coordinates. *)

From Coq Require Import Reals QArith Qreals List Lra Lia Arith.
From fltheory Require Import Space Round Draw Quadratic Process Enclose Moments.
Import ListNotations.
Open Scope R_scope.

(** ** What a refutation says *)

Inductive quantity :=
  SquaredDistance | SquaredGradient | ExcessLoss | ParticipantExcessLoss | ParticipantGradientSum.

(** What is made of a quantity's expectations in rounds [first], ..., [first + more]. *)
Inductive reduction := Every | Mean | Largest.

Record along := { of : quantity; reduced : reduction; first : nat; more : nat }.

(** A condition in formulas, whose names are what is expected along the run. *)
Inductive condition := AtMost (a b : term) | Below (a b : term) | Equal (a b : term).

Record refutation := {
  case : setting;
  optimum : list Q;
  symbols : list along;
  run : nat;  (* rounds *)
  rounds : nat;  (* in which conditions must hold, from the first on *)
  conditions : list condition;
  truth : along;
  bound : term;
  truth_above : term;
  bound_below : term
}.

Section Meaning.
Variables (s : setting) (xs : list Q).

Definition measure (o : quantity) : vectors s -> R :=
  match o with
  | SquaredDistance => squared_distance s xs
  | SquaredGradient => squared_gradient s
  | ExcessLoss => excess_loss s xs
  | ParticipantExcessLoss => participant_excess_loss s xs
  | ParticipantGradientSum => participant_gradient_sum s
  end.

Definition in_round (a : along) (r : nat) : R :=
  match reduced a with
  | Every => after s (first a + r) (measure (of a))
  | Mean => average (S (more a)) (fun k => after s (first a + k) (measure (of a)))
  | Largest => largest (more a) (fun k => after s (first a + k) (measure (of a)))
  end.

Definition holds (names : nat -> R) (l : condition) : Prop :=
  match l with
  | AtMost a b => value names a <= value names b
  | Below a b => value names a < value names b
  | Equal a b => value names a = value names b
  end.

End Meaning.

(** ** Quantities as sums over coordinates *)

Section Setting.
Variables (s : setting) (xs : list Q).
Let d := dimension s.
Let N := clients s.
Let K := local_steps s.
Notation val := (value nameless).

Hypothesis some : (0 < d)%nat.
Hypothesis moving : Q2R (client_lr s) <> 0.
Hypothesis drawable : sets s <> [].

Definition t_half (t : term) := Over t (Whole 2).
Definition t_optimum k := Number (nth k xs 0%Q).

(** Client i's loss at a coordinate, above that at the optimum, is [h/2 x^2 - h c x + rest]. *)
Definition t_loss_rest i k := Times (t_curvature s i k)
  (Times (t_optimum k) (Less (t_centre s i k) (t_half (t_optimum k)))).
Definition t_present (set : list nat) f := Over (t_among s set f) (Count (participants s)).

(** The clients' mean gradient sum, at a coordinate, is [slope x + shift] and noise. *)
Definition t_sum_slope set k := Opposite (Over (t_present set (fun i => t_pull s i k)) (t_lr s)).
Definition t_sum_shift set k :=
  Over (t_present set (fun i => Times (t_pull s i k) (t_centre s i k))) (t_lr s).
Definition t_sum_variance set k :=
  Over (Times (t_noise s (sigma s)) (t_present set (fun i => t_sum_spread s i k K)))
    (Count (participants s)).

Definition on_square (o : quantity) (k : nat) : term :=
  match o with
  | SquaredDistance => Whole 1
  | SquaredGradient => t_square (t_steep s k)
  | ExcessLoss => t_half (t_steep s k)
  | ParticipantExcessLoss =>
      t_mean (sets s) (fun set => t_half (t_present set (fun i => t_curvature s i k)))
  | ParticipantGradientSum => t_mean (sets s) (fun set => t_square (t_sum_slope set k))
  end.
Definition on_value (o : quantity) (k : nat) : term :=
  match o with
  | SquaredDistance => Opposite (Times (Whole 2) (t_optimum k))
  | SquaredGradient => Times (Whole 2) (Times (t_steep s k) (t_ahead s k))
  | ExcessLoss => t_ahead s k
  | ParticipantExcessLoss => t_mean (sets s) (fun set =>
      Opposite (t_present set (fun i => Times (t_curvature s i k) (t_centre s i k))))
  | ParticipantGradientSum => Times (Whole 2)
      (t_mean (sets s) (fun set => Times (t_sum_slope set k) (t_sum_shift set k)))
  end.
Definition on_nothing (o : quantity) (k : nat) : term :=
  match o with
  | SquaredDistance => t_square (t_optimum k)
  | SquaredGradient => t_square (t_ahead s k)
  | ExcessLoss => Opposite (Plus (Times (t_half (t_steep s k)) (t_square (t_optimum k)))
      (Times (t_ahead s k) (t_optimum k)))
  | ParticipantExcessLoss =>
      t_mean (sets s) (fun set => t_present set (fun i => t_loss_rest i k))
  | ParticipantGradientSum => t_mean (sets s)
      (fun set => Plus (t_square (t_sum_shift set k)) (t_sum_variance set k))
  end.

Definition by_coordinates (o : quantity) (x : vectors s) : R :=
  sum d (fun k => val (on_square o k) * (x k * x k) + val (on_value o k) * x k
    + val (on_nothing o k)).

Lemma distance_by_coordinates x : squared_distance s xs x = by_coordinates SquaredDistance x.
Proof.
  unfold squared_distance, by_coordinates. apply sum_ext. intros k _.
  change ((x k + -1 * val (t_optimum k)) * (x k + -1 * val (t_optimum k))
    = val (on_square SquaredDistance k) * (x k * x k) + val (on_value SquaredDistance k) * x k
      + val (on_nothing SquaredDistance k)).
  unfold on_square, on_value, on_nothing, t_square. cbn [value]. ring.
Qed.

Lemma gradient_by_coordinates x : squared_gradient s x = by_coordinates SquaredGradient x.
Proof.
  unfold squared_gradient, by_coordinates. apply sum_ext. intros k _.
  rewrite (full_coordinate s x k).
  unfold on_square, on_value, on_nothing, t_square. cbn [value]. ring.
Qed.

Lemma swapped n m (f : nat -> nat -> R) :
  sum n (fun i => sum m (fun k => f i k)) = sum m (fun k => sum n (fun i => f i k)).
Proof.
  induction n as [|n IH]; simpl; [rewrite sum_const; ring|].
  now rewrite IH, sum_add.
Qed.

Lemma loss_above i x : loss s i x - loss s i (point s xs) = sum d (fun k =>
  val (t_curvature s i k) / 2 * (x k * x k)
  + - (val (t_curvature s i k) * val (t_centre s i k)) * x k + val (t_loss_rest i k)).
Proof.
  unfold loss. fold d.
  assert (M : forall a b : nat -> R, sum d a - sum d b = sum d (fun k => a k + -1 * b k))
    by (intros; rewrite sum_add, sum_scale; ring).
  rewrite M. apply sum_ext. intros k _.
  change (point s xs k) with (val (t_optimum k)).
  change (curvature s i k) with (val (t_curvature s i k)).
  change (centre s i k) with (val (t_centre s i k)).
  unfold t_loss_rest, t_half. cbn [value]. field.
Qed.

Lemma excess_by_coordinates x : excess_loss s xs x = by_coordinates ExcessLoss x.
Proof.
  unfold excess_loss, mean_loss, by_coordinates. fold N.
  assert (M : average N (fun i => loss s i x) - average N (fun i => loss s i (point s xs))
    = average N (fun i => loss s i x - loss s i (point s xs))).
  { unfold average. rewrite (sum_ext N (fun i => loss s i x - _)
      (fun i => loss s i x + -1 * loss s i (point s xs))) by (intros; ring).
    rewrite sum_add, sum_scale. ring. }
  rewrite M. unfold average.
  rewrite (sum_ext N _ _ (fun i _ => loss_above i x)), swapped, <- sum_scale.
  apply sum_ext. intros k _.
  unfold on_square, on_value, on_nothing, t_half, t_steep, t_ahead, t_square. cbn [value].
  rewrite !value_sum. fold N.
  rewrite (sum_ext N _ (fun i => (x k * x k / 2) * val (t_curvature s i k)
    + ((- x k) * val (Times (t_curvature s i k) (t_centre s i k))
    + (val (t_optimum k) * val (Times (t_curvature s i k) (t_centre s i k))
    + (- (val (t_optimum k) * val (t_optimum k)) / 2) * val (t_curvature s i k)))))
    by (intros i _; unfold t_loss_rest, t_half; cbn [value]; field).
  rewrite !sum_add, !sum_scale. unfold Rdiv. ring.
Qed.

(** A sum over those who are drawn. *)
Lemma sum_of_drawn set n (f : nat -> nat -> R) :
  sum N (fun i => if member set i then sum n (fun k => f i k) else 0)
  = sum n (fun k => sum N (fun i => if member set i then f i k else 0)).
Proof.
  rewrite <- swapped. apply sum_ext. intros i _. destruct (member set i); [reflexivity|].
  rewrite sum_const. ring.
Qed.

Lemma participants_by_coordinates x :
  participant_excess_loss s xs x = by_coordinates ParticipantExcessLoss x.
Proof.
  unfold participant_excess_loss, draws. rewrite expectation_uniform.
  set (share := / INR (participants s)).
  rewrite (expectation_same _ _ (fun set => sum d (fun k =>
    (x k * x k) * val (t_half (t_present set (fun i => t_curvature s i k)))
    + (x k * val (Opposite (t_present set (fun i => Times (t_curvature s i k) (t_centre s i k))))
    + val (t_present set (fun i => t_loss_rest i k)))))).
  - rewrite expectation_sum. unfold by_coordinates. apply sum_ext. intros k _.
    unfold on_square, on_value, on_nothing, sets. rewrite !value_mean, !expectation_add,
      !expectation_scale. ring.
  - intros set. fold N.
    rewrite (sum_ext N _ (fun i => if member set i then sum d (fun k =>
      val (t_curvature s i k) / 2 * (x k * x k)
      + - (val (t_curvature s i k) * val (t_centre s i k)) * x k + val (t_loss_rest i k)) else 0))
      by (intros i _; rewrite loss_above; reflexivity).
    rewrite sum_of_drawn, <- sum_scale. apply sum_ext. intros k _.
    unfold t_present, t_half. cbn [value]. rewrite !value_among. fold N. fold share.
    rewrite (sum_ext N _ (fun i => (x k * x k / 2) * (if member set i then val (t_curvature s i k) else 0)
      + ((- x k) * (if member set i then val (Times (t_curvature s i k) (t_centre s i k)) else 0)
      + (if member set i then val (t_loss_rest i k) else 0))))
      by (intros i _; destruct (member set i); cbn [value]; field).
    rewrite !sum_add, !sum_scale. unfold Rdiv. fold share. ring.
Qed.

Lemma gradients_by_coordinates x :
  participant_gradient_sum s x = by_coordinates ParticipantGradientSum x.
Proof.
  unfold participant_gradient_sum, draws. rewrite expectation_uniform.
  set (share := / INR (participants s)).
  rewrite (expectation_same _ _ (fun set => sum d (fun k =>
    (x k * x k) * val (t_square (t_sum_slope set k))
    + (2 * x k * val (Times (t_sum_slope set k) (t_sum_shift set k))
    + val (Plus (t_square (t_sum_shift set k)) (t_sum_variance set k)))))).
  - rewrite expectation_sum. unfold by_coordinates. apply sum_ext. intros k _.
    unfold on_square, on_value, on_nothing, sets. cbn [value].
    rewrite !value_mean. cbn [value]. rewrite !expectation_add, !expectation_scale. ring.
  - intros set. set (among := fun i => if member set i then share else 0).
    set (noise := fun (i k : nat) (f : nat -> vectors s) => among i
      * noise_of_sum (val (t_kept s i k)) (Q2R (client_lr s)) (fun t => f t k) K).
    assert (E : forall (xi : nat -> nat -> vectors s) k,
      (scale share (total N (fun i => if member set i then total K (fun t => gradient s i
        (local_sgd (Q2R (client_lr s)) (noisy_gradients (gradient s) xi i) t x)) else zero))
        : vectors s) k
      = (val (t_sum_slope set k) * x k + val (t_sum_shift set k))
        + sum N (fun i => noise i k (xi i))).
    { intros xi k. change ((scale share ?v : vectors s) k) with (share * v k).
      rewrite coordinate_of_total.
      rewrite (sum_ext N _ (fun i =>
        (- / Q2R (client_lr s) * x k) * (if member set i then val (t_pull s i k) else 0)
        + (/ Q2R (client_lr s) * (if member set i
            then val (Times (t_pull s i k) (t_centre s i k)) else 0)
        + (if member set i then noise_of_sum (val (t_kept s i k)) (Q2R (client_lr s))
            (fun t => xi i t k) K else 0)))).
      2: { intros i _. destruct (member set i); [|simpl; ring].
           rewrite coordinate_of_total, gradients_along by assumption.
           unfold t_pull. cbn [value].
           replace (val (t_centre s i k)) with (centre s i k) by reflexivity. fold K.
           field. assumption. }
      rewrite !sum_add, !sum_scale. unfold t_sum_slope, t_sum_shift, t_present. cbn [value].
      rewrite !value_among. fold N. fold share.
      rewrite (sum_ext N (fun i => noise i k (xi i)) (fun i => share * (if member set i
        then noise_of_sum (val (t_kept s i k)) (Q2R (client_lr s)) (fun t => xi i t k) K else 0))).
      2: { intros i _. unfold noise, among. destruct (member set i); ring. }
      rewrite sum_scale. replace (val (t_lr s)) with (Q2R (client_lr s)) by reflexivity.
      cbn [value]. unfold Rdiv. fold share. ring. }
    assert (M : forall k, (k < d)%nat -> expectation (errors s) (fun xi =>
        ((val (t_sum_slope set k) * x k + val (t_sum_shift set k))
          + sum N (fun i => noise i k (xi i)))
        * ((val (t_sum_slope set k) * x k + val (t_sum_shift set k))
          + sum N (fun i => noise i k (xi i))))
      = (x k * x k) * val (t_square (t_sum_slope set k))
        + (2 * x k * val (Times (t_sum_slope set k) (t_sum_shift set k))
        + val (Plus (t_square (t_sum_shift set k)) (t_sum_variance set k)))).
    { intros k L. etransitivity.
      - apply (errors_moments s some (fun i f => noise i k f) (fun i => among i * among i
          * (val (t_noise s (sigma s)) * val (t_sum_spread s i k K)))); intros i; unfold noise.
        + rewrite expectation_scale.
          etransitivity; [apply f_equal; exact (proj1 (noise_of_sum_moments s some i k K L moving))|].
          ring.
        + etransitivity; [|apply f_equal;
            exact (proj2 (noise_of_sum_moments s some i k K L moving))].
          rewrite <- expectation_scale. apply expectation_same. intros f. ring.
      - unfold t_sum_variance, t_square, t_present. cbn [value]. rewrite value_among.
        fold N. fold share.
        rewrite (sum_ext N (fun i => among i * among i * _) (fun i =>
          share * share * val (t_noise s (sigma s))
          * (if member set i then val (t_sum_spread s i k K) else 0))).
        + rewrite sum_scale. unfold Rdiv. fold share. ring.
        + intros i _. unfold among. destruct (member set i); ring. }
    rewrite (expectation_same _ _ (fun xi => sum d (fun k =>
      ((val (t_sum_slope set k) * x k + val (t_sum_shift set k))
        + sum N (fun i => noise i k (xi i)))
      * ((val (t_sum_slope set k) * x k + val (t_sum_shift set k))
        + sum N (fun i => noise i k (xi i)))))).
    + rewrite expectation_sum. apply sum_ext. intros k L. now apply M.
    + intros xi. apply sum_ext. intros k _. now rewrite <- E.
Qed.

Theorem measured o x : measure s xs o x = by_coordinates o x.
Proof.
  destruct o; [apply distance_by_coordinates|apply gradient_by_coordinates
    |apply excess_by_coordinates|apply participants_by_coordinates|apply gradients_by_coordinates].
Qed.

Theorem expected_by_coordinates o r : after s r (measure s xs o) = sum d (fun k =>
  val (on_square o k) * after s r (fun x => x k * x k)
  + val (on_value o k) * after s r (fun x => x k) + val (on_nothing o k)).
Proof.
  unfold after. rewrite (expectation_same _ _ (by_coordinates o)) by (intros; apply measured).
  unfold by_coordinates. rewrite expectation_sum. apply sum_ext. intros k _.
  apply (expectation_quadratic _ _ _ _ (fun x : vectors s => x k)).
  now apply iterates_certain.
Qed.

End Setting.
