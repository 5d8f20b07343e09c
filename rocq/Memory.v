(** Methods with memory and one local step: FedVARP, SAGA, MIFA, SCAFFOLD. A Lyapunov function of the
    model and the memory falls in every round; a checker of its certificates, and the proof. *)

From Coq Require Import Reals QArith Qreals List Lra Lia Arith Bool.
From fltheory Require Import Space Forms Round OneRound Sound Draw Bound Descent Rounds.
Import ListNotations.
Open Scope R_scope.

(** ** A form is linear in the inner products of its coordinates *)

Fixpoint gram_row (r : linear) (ks : list nat) (g : nat -> R) : R :=
  match r, ks with
  | a :: r', k :: ks' => Q2R a * g k + gram_row r' ks' g
  | _, _ => 0
  end.

Fixpoint gram_form (B : quadratic) (js ks : list nat) (g : nat -> nat -> R) : R :=
  match B, js with
  | r :: B', j :: js' => gram_row r ks (g j) + gram_form B' js' ks g
  | _, _ => 0
  end.

Lemma gram_row_lin {V : space} r ks (a : nat -> V) u :
  inner u (lin r (map a ks)) = gram_row r ks (fun k => inner u (a k)).
Proof.
  revert ks. induction r as [|b r IH]; intros [|k ks]; simpl; try apply inner_zero_r.
  now rewrite inner_add_r, inner_scale_r, IH.
Qed.

Lemma form_gram {V : space} B js (a : nat -> V) :
  form B (map a js) = gram_form B js js (fun j k => inner (a j) (a k)).
Proof.
  unfold form. assert (H : forall is, bil B (map a is) (map a js) =
    gram_form B is js (fun j k => inner (a j) (a k))); [|apply H].
  induction B as [|r B IH]; intros [|j is]; simpl; auto. now rewrite gram_row_lin, IH.
Qed.

Lemma gram_row_ext r ks f g : (forall k, f k = g k) -> gram_row r ks f = gram_row r ks g.
Proof. intros E. revert ks. induction r as [|a r IH]; intros [|k ks]; simpl; auto. now rewrite E, IH. Qed.

Lemma gram_form_ext B js ks f g :
  (forall j k, f j k = g j k) -> gram_form B js ks f = gram_form B js ks g.
Proof.
  intros E. revert js. induction B as [|r B IH]; intros [|j js]; simpl; auto.
  rewrite IH. f_equal. apply gram_row_ext. intros. apply E.
Qed.

Lemma gram_row_add r ks f g :
  gram_row r ks (fun k => f k + g k) = gram_row r ks f + gram_row r ks g.
Proof. revert ks. induction r as [|a r IH]; intros [|k ks]; simpl; try ring. rewrite IH. ring. Qed.

Lemma gram_form_add B js ks f g :
  gram_form B js ks (fun j k => f j k + g j k) = gram_form B js ks f + gram_form B js ks g.
Proof.
  revert js. induction B as [|r B IH]; intros [|j js]; simpl; try ring. rewrite IH, gram_row_add. ring.
Qed.

Lemma gram_row_scale r ks a f : gram_row r ks (fun k => a * f k) = a * gram_row r ks f.
Proof. revert ks. induction r as [|b r IH]; intros [|k ks]; simpl; try ring. rewrite IH. ring. Qed.

Lemma gram_form_scale B js ks a f :
  gram_form B js ks (fun j k => a * f j k) = a * gram_form B js ks f.
Proof.
  revert js. induction B as [|r B IH]; intros [|j js]; simpl; try ring. rewrite IH, gram_row_scale. ring.
Qed.

Lemma gram_form_expectation {A} (l : law A) B js ks (f : A -> nat -> nat -> R) :
  expectation l (fun o => gram_form B js ks (f o)) =
  gram_form B js ks (fun j k => expectation l (fun o => f o j k)).
Proof.
  induction l as [|[p o] l IH]; simpl.
  - rewrite (gram_form_ext B js ks _ (fun _ _ => 0 * 0)) by (intros; ring).
    rewrite (gram_form_scale B js ks 0 (fun _ _ => 0)). ring.
  - now rewrite gram_form_add, gram_form_scale, <- IH.
Qed.

Lemma gram_form_sum B js ks n (f : nat -> nat -> nat -> R) :
  sum n (fun i => gram_form B js ks (f i)) = gram_form B js ks (fun j k => sum n (fun i => f i j k)).
Proof.
  induction n as [|n IH]; simpl.
  - rewrite (gram_form_ext B js ks _ (fun _ _ => 0 * 0)) by (intros; ring).
    rewrite (gram_form_scale B js ks 0 (fun _ _ => 0)). ring.
  - now rewrite gram_form_add, IH.
Qed.

Lemma gram_form_average B js ks n (f : nat -> nat -> nat -> R) :
  average n (fun i => gram_form B js ks (f i)) =
  gram_form B js ks (fun j k => average n (fun i => f i j k)).
Proof. unfold average. now rewrite gram_form_sum, gram_form_scale. Qed.

(** ** Vectors of which each client's is one if it is there, and another if not *)

Section Random.
Context {V : space}.
Variables (l : law (nat -> bool)) (n : nat) (p p2 : R) (kept fresh : nat -> nat -> V).
Hypothesis some : (0 < n)%nat.
Hypothesis there : there_with l n p p2.

Definition next (who : nat -> bool) (j i : nat) : V := if who i then fresh j i else kept j i.
Definition delta (j i : nat) : V := minus (fresh j i) (kept j i).
Definition hat (j i : nat) : V := add (kept j i) (scale p (delta j i)).

Lemma next_value who j i v :
  inner (next who j i) v = inner (hat j i) v + (indicator (who i) - p) * inner (delta j i) v.
Proof.
  unfold next, hat. rewrite inner_add, inner_scale. unfold delta.
  destruct (who i); simpl; rewrite inner_minus; ring.
Qed.

Lemma certain_there : expectation l (fun _ => 1) = 1.
Proof. apply (there_certain _ _ _ _ there). Qed.

Lemma centred i : (i < n)%nat -> expectation l (fun who => indicator (who i) - p) = 0.
Proof.
  intros I. rewrite (expectation_ext l _ (fun who => indicator (who i) + - p * 1)) by (intros; ring).
  rewrite expectation_add, expectation_scale, certain_there, (there_one _ _ _ _ there i I). ring.
Qed.

Lemma covariance i j : (i < n)%nat -> (j < n)%nat ->
  expectation l (fun who => (indicator (who i) - p) * (indicator (who j) - p)) =
  (p2 - p * p) + (if Nat.eqb j i then p - p2 else 0).
Proof.
  intros I J. rewrite (expectation_ext l _ (fun who => indicator (who i) * indicator (who j)
    + (- p * indicator (who i) + (- p * indicator (who j) + p * p * 1)))) by (intros; ring).
  rewrite !expectation_add, !expectation_scale, certain_there, (there_one _ _ _ _ there i I),
    (there_one _ _ _ _ there j J).
  destruct (Nat.eqb_spec j i) as [->|N].
  - rewrite (expectation_ext l _ (fun who => indicator (who i))) by (intros; apply indicator_twice).
    rewrite (there_one _ _ _ _ there i I). ring.
  - rewrite (there_two _ _ _ _ there i j I J) by auto. ring.
Qed.

Lemma mean_first j v : expectation l (fun who => inner (mean n (next who j)) v) =
  inner (mean n (hat j)) v.
Proof.
  rewrite (expectation_ext l _ (fun who => inner (mean n (hat j)) v
    * 1 + / INR n * sum n (fun i => inner (delta j i) v * (indicator (who i) - p)))).
  - rewrite expectation_add, !expectation_scale, certain_there, expectation_sum.
    rewrite (sum_ext n _ (fun _ => 0)), sum_const; [ring|]. intros i I.
    rewrite expectation_scale, centred by exact I. ring.
  - intros q _. rewrite !inner_mean. unfold average. rewrite Rmult_1_r, <- Rmult_plus_distr_l. f_equal.
    rewrite <- sum_add. apply sum_ext. intros i _. rewrite next_value. ring.
Qed.

Let alpha := (p2 - p * p) + (p - p2) / INR n.
Let beta := (p - p2) / INR n.

Lemma mean_gram j k : expectation l (fun who =>
    inner (mean n (next who j)) (mean n (next who k))) =
  inner (mean n (hat j)) (mean n (hat k))
  + (alpha * inner (mean n (delta j)) (mean n (delta k))
     + beta * average n (fun i => inner (apart n (delta j) i) (apart n (delta k) i))).
Proof.
  assert (N : INR n <> 0) by (apply not_0_INR; lia).
  set (xi (who : nat -> bool) i := indicator (who i) - p).
  rewrite (expectation_ext l _ (fun who => inner (mean n (hat j)) (mean n (hat k)) * 1
    + (/ INR n * sum n (fun i => inner (delta k i) (mean n (hat j)) * xi who i)
    + (/ INR n * sum n (fun i => inner (delta j i) (mean n (hat k)) * xi who i)
    + / INR n * / INR n * sum n (fun i => sum n (fun m =>
        inner (delta j i) (delta k m) * (xi who i * xi who m))))))).
  - rewrite !expectation_add, !expectation_scale, certain_there, !expectation_sum.
    assert (Z : forall f : nat -> R,
      sum n (fun i => expectation l (fun who => f i * xi who i)) = 0).
    { intros f. rewrite (sum_ext n _ (fun _ => 0)), sum_const; [ring|]. intros i I.
      rewrite expectation_scale. unfold xi. rewrite centred by exact I. ring. }
    rewrite !Z.
    rewrite (sum_ext n _ (fun i => (p2 - p * p) * inner (delta j i) (total n (delta k))
      + (p - p2) * inner (delta j i) (delta k i))).
    2: { intros i I. rewrite expectation_sum.
         rewrite (sum_ext n _ (fun m => (p2 - p * p) * inner (delta j i) (delta k m)
           + (if Nat.eqb m i then (p - p2) * inner (delta j i) (delta k m) else 0))).
         - rewrite sum_add, sum_scale, <- inner_total_r. f_equal.
           exact (sum_delta n (fun m => (p - p2) * inner (delta j i) (delta k m)) i I).
         - intros m M. rewrite expectation_scale. unfold xi. rewrite covariance by assumption.
           destruct (Nat.eqb m i); ring. }
    rewrite sum_add, !sum_scale, <- inner_total.
    assert (T : inner (total n (delta j)) (total n (delta k)) =
      INR n * INR n * inner (mean n (delta j)) (mean n (delta k))).
    { unfold mean. rewrite inner_scale, inner_scale_r. field. exact N. }
    assert (A := average_inner n (delta j) (delta k) some).
    assert (A' : sum n (fun i => inner (delta j i) (delta k i)) =
      INR n * (inner (mean n (delta j)) (mean n (delta k))
        + average n (fun i => inner (apart n (delta j) i) (apart n (delta k) i)))).
    { rewrite <- A. unfold average. field. exact N. }
    rewrite T, A'. unfold alpha, beta. field. exact N.
  - intros q _. destruct q as [q who]. cbn [snd].
    assert (E : forall m v, inner (mean n (next who m)) v = inner (mean n (hat m)) v
      + / INR n * sum n (fun i => xi who i * inner (delta m i) v)).
    { intros m v. rewrite !inner_mean. unfold average. rewrite <- Rmult_plus_distr_l, <- sum_add.
      f_equal. apply sum_ext. intros i _. apply next_value. }
    rewrite E, (inner_sym V (mean n (hat j))), E.
    rewrite (sum_ext n (fun i => xi who i * inner (delta j i) (mean n (next who k)))
      (fun i => xi who i * inner (delta j i) (mean n (hat k))
        + / INR n * sum n (fun m => inner (delta j i) (delta k m) * (xi who i * xi who m)))).
    + rewrite sum_add, sum_scale, (inner_sym V (mean n (hat k))).
      rewrite (sum_ext n (fun i => xi who i * inner (delta k i) (mean n (hat j)))
        (fun i => inner (delta k i) (mean n (hat j)) * xi who i)) by (intros; ring).
      rewrite (sum_ext n (fun i => xi who i * inner (delta j i) (mean n (hat k)))
        (fun i => inner (delta j i) (mean n (hat k)) * xi who i)) by (intros; ring). ring.
    + intros i _. rewrite (inner_sym V (delta j i) (mean n (next who k))), E.
      rewrite (inner_sym V (mean n (hat k))), Rmult_plus_distr_l. f_equal.
      rewrite <- Rmult_assoc, (Rmult_comm (xi who i)), Rmult_assoc. f_equal. rewrite <- sum_scale.
      apply sum_ext. intros m _. rewrite (inner_sym V (delta k m)). ring.
Qed.

Lemma own_gram i j k : (i < n)%nat -> expectation l (fun who =>
    inner (next who j i) (next who k i)) =
  inner (hat j i) (hat k i) + p * (1 - p) * inner (delta j i) (delta k i).
Proof.
  intros I. rewrite (expectation_ext l _ (fun who => inner (kept j i) (kept k i) * 1
    + (inner (fresh j i) (fresh k i) - inner (kept j i) (kept k i)) * indicator (who i))).
  - rewrite expectation_add, !expectation_scale, certain_there, (there_one _ _ _ _ there i I).
    unfold hat, delta. repeat (rewrite ?inner_add, ?inner_add_r, ?inner_scale, ?inner_scale_r,
      ?inner_minus, ?inner_minus_r). ring.
  - intros q _. unfold next. destruct (snd q i); simpl; ring.
Qed.

Lemma mean_form B js : expectation l (fun who => form B (map (fun j => mean n (next who j)) js)) =
  form B (map (fun j => mean n (hat j)) js)
  + (alpha * form B (map (fun j => mean n (delta j)) js)
     + beta * average n (fun i => form B (map (fun j => apart n (delta j) i) js))).
Proof.
  rewrite (expectation_ext l _ (fun who => gram_form B js js (fun j k =>
    inner (mean n (next who j)) (mean n (next who k))))) by (intros; apply form_gram).
  rewrite gram_form_expectation, (gram_form_ext _ _ _ _ _ mean_gram), !gram_form_add, !gram_form_scale.
  rewrite <- gram_form_average, !form_gram. f_equal. f_equal. f_equal. apply average_ext.
  intros i _. now rewrite form_gram.
Qed.

(** What clients differ in afterwards. *)
Lemma apart_form B js : expectation l (fun who =>
    average n (fun i => form B (map (fun j => apart n (next who j) i) js))) =
  average n (fun i => form B (map (fun j => apart n (hat j) i) js))
  + ((p * (1 - p) - alpha) * form B (map (fun j => mean n (delta j)) js)
     + (p * (1 - p) - beta) * average n (fun i => form B (map (fun j => apart n (delta j) i) js))).
Proof.
  assert (S : forall f : nat -> nat -> V, average n (fun i => form B (map (fun j => apart n (f j) i) js)) =
    average n (fun i => form B (map (fun j => f j i) js)) - form B (map (fun j => mean n (f j)) js)).
  { intros f. assert (E : average n (fun i => form B (map (fun j => f j i) js)) =
      form B (map (fun j => mean n (f j)) js)
      + average n (fun i => form B (map (fun j => apart n (f j) i) js)))
      by exact (average_form n (fun i j => f j i) B js some).
    rewrite E. ring. }
  rewrite (expectation_ext l _ (fun who => average n (fun i => form B (map (fun j => next who j i) js))
    + -1 * form B (map (fun j => mean n (next who j)) js))) by (intros; rewrite S; ring).
  rewrite expectation_add, expectation_scale, mean_form.
  rewrite (expectation_ext l _ (fun who => / INR n * sum n (fun i => gram_form B js js (fun j k =>
    inner (next who j i) (next who k i))))).
  2: { intros q _. unfold average. f_equal. apply sum_ext. intros i _. apply form_gram. }
  rewrite expectation_scale, expectation_sum.
  rewrite (sum_ext n _ (fun i => form B (map (fun j => hat j i) js)
    + p * (1 - p) * form B (map (fun j => delta j i) js))).
  2: { intros i I. rewrite gram_form_expectation.
       rewrite (gram_form_ext _ _ _ _ _ (fun j k => own_gram i j k I)).
       now rewrite gram_form_add, gram_form_scale, !form_gram. }
  rewrite sum_add, sum_scale.
  assert (H := S hat). assert (D := S delta). unfold average at 2 in H. unfold average at 2 in D.
  rewrite H. apply (Rmult_eq_compat_l (p * (1 - p))) in D. lra.
Qed.

End Random.

(** ** What is claimed *)

Record memory_claim := Memory {
  pool : nat;
  chance : Q;  (* that a client is there, and that two are *)
  two_there : Q;
  step_size : Q;
  surprise : Q;
  from_zero : bool;  (* remembered gradients are zero at first, else those at the first model *)
  of_gap : bool;  (* whether gaps of F are summed, else the distance is bounded *)
  all_smoothness : Q;
  all_convexity : Q;
  each_round : Q;  (* the rate *)
  each_gap : Q;
  at_start : Q;
  dissimilarity : Q
}.

(** A function of x - x*, and of what is remembered: the means over clients of the gradients and of
    the points, less those at x*, and what clients differ in. *)
Record lyapunov := Lyapunov {
  of_means : quadratic;
  of_differences : quadratic;
  memory_value : Q;
  model_value : Q;
  positive_pairs : pairs;
  decrease_pairs : pairs;
  begin_pairs : pairs;
  positive_means : squares;
  positive_differences : squares;
  decrease_means : squares;
  decrease_differences : squares;
  begin_means : squares;
  begin_differences : squares
}.

(** A client's coordinates are x - x*, the gradient and the point that are remembered of it, less those
    at x*, and its gradient at x less that at x*. Its points are that of the memory, x and x*. *)
Definition point_at (b : nat) : linear := match b with O => unit 2 | 1%nat => unit 0 | _ => [] end.
Definition gradient_at (b : nat) : linear := match b with O => unit 1 | 1%nat => unit 3 | _ => [] end.

Section Checker.
Variables (c : memory_claim) (w : lyapunov).

Definition at_points (b e : nat) : quadratic :=
  condition_of (all_smoothness c) (all_convexity c) (gradient_at e) (lminus (point_at b) (point_at e))
    (lminus (gradient_at b) (gradient_at e)).

Definition all_conditions (l : pairs) : quadratic :=
  qsum (map (fun p => qscale (snd p) (at_points (fst (fst p)) (snd (fst p)))) l).

(** The losses at the memory's points and at x that are left over are so many times. *)
Definition values_fit (l : pairs) (v0 v1 : Q) : bool :=
  forallb (fun p => Qle_bool 0 (snd p) && (fst (fst p) <=? 2)%nat && (snd (fst p) <=? 2)%nat) l
  && is_zero (ladd (remaining l) [v0; v1; Qred (- (v0 + v1))]).

(** What becomes of a client's part in the model, of its memory, and of the model's step, if it is
    not there and if it is. *)
Definition kept_form (j : nat) : linear :=
  match j with
  | O => lminus (unit 0) (lscale (step_size c) (unit 1))
  | 1%nat => unit 1
  | 2%nat => unit 2
  | _ => lscale (- step_size c) (unit 1)
  end.

Definition delta_form (j : nat) : linear :=
  match j with
  | 1%nat => lminus (unit 3) (unit 1)
  | 2%nat => lminus (unit 0) (unit 2)
  | _ => lscale (Qred (- (step_size c * surprise c * inject_Z (Z.of_nat (pool c)))))
           (lminus (unit 3) (unit 1))
  end.

Definition hat_form (j : nat) : linear := ladd (kept_form j) (lscale (chance c) (delta_form j)).

Definition in_three (form_of : nat -> linear) : quadratic :=
  substituted (of_means w) (map form_of [0; 1; 2]%nat).
Definition in_two (form_of : nat -> linear) : quadratic :=
  substituted (of_differences w) (map form_of [1; 2]%nat).

Definition own_variance : Q := Qred (chance c * (1 - chance c)).
Definition apart_variance : Q :=
  Qred ((chance c - two_there c) / inject_Z (Z.of_nat (pool c))).
Definition mean_variance : Q := Qred (two_there c - chance c * chance c + apart_variance).

(** The step's square counts L/2 times the model's value. *)
Definition of_step : Q := Qred (model_value w * all_smoothness c / 2).

Definition after_means : quadratic :=
  qadd (in_three hat_form)
    (qadd (qscale mean_variance (in_three delta_form))
      (qadd (qscale (Qred (own_variance - mean_variance)) (in_two delta_form))
        (qadd (qscale (model_value w) (both (unit 3) (hat_form 3)))
          (qadd (qscale of_step (product (hat_form 3) (hat_form 3)))
            (qscale (Qred (of_step * mean_variance)) (product (delta_form 3) (delta_form 3))))))).

Definition after_differences : quadratic :=
  qadd (in_two hat_form)
    (qadd (qscale apart_variance (in_three delta_form))
      (qadd (qscale (Qred (own_variance - apart_variance)) (in_two delta_form))
        (qscale (Qred (of_step * apart_variance)) (product (delta_form 3) (delta_form 3))))).

Definition nearness : quadratic := if of_gap c then [] else product (unit 0) (unit 0).
Definition spread_at_start : quadratic :=
  if from_zero c then qscale (dissimilarity c) (product (unit 1) (unit 1)) else [].
Definition start_means : list linear :=
  if from_zero c then [unit 0; []; unit 2; unit 3] else [unit 0; unit 3; unit 0; unit 3].
(** Clients do not differ in x - x*. *)
Definition apart_forms : list linear := [[]; unit 1; unit 2; unit 3].
Definition start_differences : list linear :=
  if from_zero c then apart_forms else [[]; unit 3; []; unit 3].

Definition proves_memory : bool :=
  let p := chance c in
  let (mv, xv) := (memory_value w, model_value w) in
  (1 <=? pool c)%nat && negb (Qle_bool (all_smoothness c) 0) && negb (Qle_bool (all_smoothness c) (all_convexity c))
  && Qle_bool 0 xv && Qle_bool 0 (each_round c) && Qle_bool 0 (dissimilarity c)
  && (of_gap c || Qeq_bool (each_gap c) 0)
  && values_fit (positive_pairs w) mv xv
  && values_fit (decrease_pairs w) (Qred (each_round c * mv - mv * (1 - p)))
       (Qred (each_round c * xv - mv * p - xv - each_gap c))
  && (if from_zero c then values_fit (begin_pairs w) (- mv) (- xv)
      else values_fit (begin_pairs w) 0 (Qred (- (mv + xv))))
  && is_sum_of_squares (qadd (qadd (in_three unit) (qscale (-1) nearness))
       (all_conditions (positive_pairs w))) (positive_means w)
  && is_sum_of_squares (substituted (qadd (in_two unit) (all_conditions (positive_pairs w)))
       apart_forms) (positive_differences w)
  && is_sum_of_squares (qadd (qadd (qscale (each_round c) (in_three unit)) (qscale (-1) after_means))
       (all_conditions (decrease_pairs w))) (decrease_means w)
  && is_sum_of_squares (substituted (qadd (qadd (qscale (each_round c) (in_two unit))
       (qscale (-1) after_differences)) (all_conditions (decrease_pairs w))) apart_forms)
       (decrease_differences w)
  && is_sum_of_squares (substituted (qadd (qadd (qscale (at_start c) (product (unit 0) (unit 0)))
         (qadd spread_at_start (qscale (-1) (in_three unit)))) (all_conditions (begin_pairs w)))
       start_means) (begin_means w)
  && is_sum_of_squares (substituted (qadd (qadd spread_at_start (qscale (-1) (in_two unit)))
       (all_conditions (begin_pairs w))) start_differences) (begin_differences w).

End Checker.

(** ** The claim's meaning *)

Definition remembers (c : memory_claim) : Prop :=
  forall (V : space) (F : nat -> V -> R) (G : nat -> V -> V) (x xs : V) (d : R) (memory : nat -> V)
    (draws : law (nat -> bool)) (iterates : nat -> law (V * (nat -> V))),
  (forall i, (i < pool c)%nat -> interpolable (Q2R (all_smoothness c)) (Q2R (all_convexity c)) (F i) (G i)) ->
  same (mean_gradient (pool c) G xs) zero ->
  average (pool c) (fun i => square (G i xs)) <= d * d ->
  there_with draws (pool c) (Q2R (chance c)) (Q2R (two_there c)) ->
  (if from_zero c then forall i, (i < pool c)%nat -> same (G i (memory i)) zero
   else memory = (fun _ => x)) ->
  iterates 0%nat = [(1, (x, memory))] ->
  (forall r, probabilities (iterates r)) ->
  (forall value, tower iterates value (fun state => expectation draws (fun who =>
    value (memory_round (pool c) (Q2R (step_size c)) (Q2R (surprise c)) G who state)))) ->
  forall r,
  if of_gap c
  then Q2R (each_gap c) * sum r (fun k => Q2R (each_round c) ^ (r - 1 - k)
         * expectation (iterates k) (fun state =>
             mean_loss (pool c) F (fst state) - mean_loss (pool c) F xs))
       <= Q2R (each_round c) ^ r * (Q2R (at_start c) * square (minus x xs)
          + Q2R (dissimilarity c) * (d * d))
  else expectation (iterates r) (fun state => square (minus (fst state) xs))
       <= Q2R (each_round c) ^ r * (Q2R (at_start c) * square (minus x xs)
          + Q2R (dissimilarity c) * (d * d)).

(** ** The proof *)

Section Proof.
Variables (c : memory_claim) (w : lyapunov).
Hypothesis ok : proves_memory c w = true.
Let n := pool c.
Let L := Q2R (all_smoothness c).
Let mu := Q2R (all_convexity c).
Let p := Q2R (chance c).
Let eta := Q2R (step_size c).
Let sur := Q2R (surprise c).
Let mv := Q2R (memory_value w).
Let xv := Q2R (model_value w).

Variables (V : space) (F : nat -> V -> R) (G : nat -> V -> V) (xs : V) (d : R).
Variable draws : law (nat -> bool).
Hypothesis interpolated : forall i, (i < n)%nat -> interpolable L mu (F i) (G i).
Hypothesis optimal : same (mean_gradient n G xs) zero.
Hypothesis alike : average n (fun i => square (G i xs)) <= d * d.
Hypothesis there : there_with draws n p (Q2R (two_there c)).

Lemma memory_checked : (0 < n)%nat /\ 0 < L /\ mu < L /\ 0 <= xv /\ 0 <= Q2R (each_round c) /\
  0 <= Q2R (dissimilarity c) /\ (of_gap c = false -> Q2R (each_gap c) = 0).
Proof.
  assert (H := ok). unfold proves_memory in H.
  do 9 (apply andb_prop in H; destruct H as [H _]).
  do 6 (apply andb_prop in H; destruct H as [H ?]).
  repeat match goal with
  | H : (_ <=? _)%nat = true |- _ => apply Nat.leb_le in H
  | H : negb (Qle_bool _ _) = true |- _ => apply Q2R_lt in H
  | H : Qle_bool 0 _ = true |- _ => apply Q2R_nonneg in H
  end.
  rewrite Q2R_0 in *. unfold n, L, mu, xv. repeat split; auto.
  intros E. rewrite E in *. now apply Qeq_bool_0.
Qed.

Definition value_of (i : nat) (v : V) : R := F i v - F i xs - inner (G i xs) (minus v xs).

Lemma value_interpolated i a b : (i < n)%nat ->
  inner (minus (G i b) (G i xs)) (minus a b)
  + (square (minus (G i a) (G i b)) / L + mu * square (minus a b)
     - 2 * (mu / L) * inner (minus (G i a) (G i b)) (minus a b)) / (2 * (1 - mu / L))
  <= value_of i a - value_of i b.
Proof.
  intros I. assert (H := interpolated i I a b). unfold value_of.
  rewrite inner_minus. rewrite (inner_minus_r a b (G i xs)), !inner_minus_r in *. lra.
Qed.

(** *** A state *)

Section State.
Variables (x : V) (memory : nat -> V).

Definition coordinate_of (i j : nat) : V :=
  match j with
  | O => minus x xs
  | 1%nat => minus (G i (memory i)) (G i xs)
  | 2%nat => minus (memory i) xs
  | _ => minus (G i x) (G i xs)
  end.

Definition js := [0; 1; 2; 3]%nat.
Definition means_of : list V := map (fun j => mean n (fun i => coordinate_of i j)) js.
Definition aparts_of (i : nat) : list V := map (fun j => apart n (fun i => coordinate_of i j) i) js.
Definition at_memory : R := average n (fun i => value_of i (memory i)).
Definition at_model : R := average n (fun i => value_of i x).

Definition lyapunov_value : R :=
  form (of_means w) (map (fun j => mean n (fun i => coordinate_of i j)) [0; 1; 2]%nat)
  + average n (fun i => form (of_differences w)
      (map (fun j => apart n (fun i => coordinate_of i j) i) [1; 2]%nat))
  + mv * at_memory + xv * at_model.

Lemma at_points_bounded i a b : (i < n)%nat ->
  form (at_points c a b) (map (coordinate_of i) js) <=
  value_of i (match a with O => memory i | 1%nat => x | _ => xs end)
  - value_of i (match b with O => memory i | 1%nat => x | _ => xs end).
Proof.
  intros I. destruct memory_checked as (_ & P & M & _).
  set (place b := match b with O => memory i | 1%nat => x | _ => xs end).
  assert (S : forall b, same (lin (point_at b) (map (coordinate_of i) js)) (minus (place b) xs)).
  { intros [|[|e]] v; unfold place; cbn [point_at]; try (rewrite lin_unit by (simpl; lia); reflexivity).
    rewrite lin_nil, inner_minus. ring. }
  assert (T : forall b, same (lin (gradient_at b) (map (coordinate_of i) js))
      (minus (G i (place b)) (G i xs))).
  { intros [|[|e]] v; unfold place; cbn [gradient_at];
      try (rewrite lin_unit by (simpl; lia); reflexivity).
    rewrite lin_nil, inner_minus. ring. }
  unfold at_points.
  rewrite (condition_of_value (all_smoothness c) (all_convexity c) _ _ _ _ (minus (G i (place b)) (G i xs))
    (minus (place a) (place b)) (minus (G i (place a)) (G i (place b))) P M (T b)).
  - fold L mu. now apply value_interpolated.
  - intros v. rewrite lin_lminus, (S a v), (S b v), !inner_minus. ring.
  - intros v. rewrite lin_lminus, (T a v), (T b v), !inner_minus. ring.
Qed.

Lemma all_conditions_bounded i l v0 v1 : (i < n)%nat -> values_fit l v0 v1 = true ->
  form (all_conditions c l) (map (coordinate_of i) js) <=
  Q2R v0 * value_of i (memory i) + Q2R v1 * value_of i x.
Proof.
  intros I E. unfold values_fit in E. apply andb_prop in E. destruct E as [E Z].
  set (value b := value_of i (match b with O => memory i | 1%nat => x | _ => xs end)).
  assert (none : value 2%nat = 0) by (unfold value, value_of; rewrite inner_minus_r; ring).
  set (values := [value 0%nat; value 1%nat; value 2%nat] : list line).
  assert (own : forall b, (b <= 2)%nat ->
    inner (s := line) (lin (V := line) (unit b) values) 1 = value b).
  { intros b B. rewrite (lin_unit (V := line)) by (simpl; lia).
    destruct b as [|[|[|b]]]; [| | |lia]; simpl; ring. }
  assert (T := lin_is_zero (V := line) _ values 1 Z). rewrite lin_ladd in T.
  assert (U : inner (s := line) (lin (V := line) [v0; v1; Qred (- (v0 + v1))] values) 1 =
    Q2R v0 * value 0%nat + Q2R v1 * value 1%nat).
  { unfold values. cbn [lin inner line add scale zero]. rewrite none. ring. }
  rewrite U in T. clear U Z.
  assert (H : form (all_conditions c l) (map (coordinate_of i) js) <=
    - inner (s := line) (lin (V := line) (remaining l) values) 1).
  { unfold all_conditions, remaining. clear T. induction l as [|[[a b] u] l IH].
    - simpl. unfold form. rewrite bil_nil. lra.
    - cbn [forallb fst snd] in E. apply andb_prop in E. destruct E as [E R].
      apply andb_prop in E. destruct E as [E B]. apply andb_prop in E. destruct E as [P A].
      apply Nat.leb_le in A. apply Nat.leb_le in B. apply Q2R_nonneg in P.
      specialize (IH R). cbn [map fold_right fst snd].
      rewrite (lin_ladd (V := line)), lin_lscale, lin_lminus, !own by assumption.
      assert (C := at_points_bounded i a b I). fold (value a) (value b) in C.
      assert (D : form (qsum (qscale u (at_points c a b) :: map (fun p => qscale (snd p)
          (at_points c (fst (fst p)) (snd (fst p)))) l)) (map (coordinate_of i) js) =
        Q2R u * form (at_points c a b) (map (coordinate_of i) js)
        + form (qsum (map (fun p => qscale (snd p) (at_points c (fst (fst p)) (snd (fst p)))) l))
            (map (coordinate_of i) js)).
      { cbn [qsum fold_right]. now rewrite form_qadd, form_qscale. }
      rewrite D. nra. }
  unfold value in T. lra.
Qed.

Lemma lin_of_mean r v : inner (mean n (fun i => lin r (map (coordinate_of i) js))) v =
  inner (lin r means_of) v.
Proof. symmetry. exact (lin_mean n coordinate_of r js v). Qed.

Lemma lin_of_apart r i : same (apart n (fun i => lin r (map (coordinate_of i) js)) i)
  (lin r (aparts_of i)).
Proof. intros v. symmetry. exact (lin_apart n coordinate_of r js i v). Qed.

(** What one inequality's blocks prove. *)
Lemma inequality l v0 v1 A B : values_fit l v0 v1 = true ->
  0 <= form (qadd A (all_conditions c l)) means_of ->
  (forall i, 0 <= form (qadd B (all_conditions c l)) (aparts_of i)) ->
  0 <= form A means_of + average n (fun i => form B (aparts_of i))
       + Q2R v0 * at_memory + Q2R v1 * at_model.
Proof.
  intros E HA HB. destruct memory_checked as (P & _).
  assert (S : average n (fun i => form (all_conditions c l) (map (coordinate_of i) js)) <=
    Q2R v0 * at_memory + Q2R v1 * at_model).
  { unfold at_memory, at_model. rewrite <- !average_scale, <- average_add. unfold average.
    apply Rmult_le_compat_l; [left; apply Rinv_0_lt_compat; now apply lt_0_INR|].
    apply sum_le. intros i I. now apply all_conditions_bounded. }
  rewrite (average_form n coordinate_of (all_conditions c l) js P) in S.
  fold means_of in S. rewrite form_qadd in HA.
  assert (T : 0 <= average n (fun i => form B (aparts_of i))
    + average n (fun i => form (all_conditions c l) (aparts_of i))).
  { rewrite <- average_add. apply average_nonneg. intros i _. rewrite <- form_qadd. apply HB. }
  unfold aparts_of in *. lra.
Qed.

Lemma in_three_value (f : nat -> linear) : form (in_three w f) means_of =
  form (of_means w) (map (fun j => mean n (fun i => lin (f j) (map (coordinate_of i) js))) [0; 1; 2]%nat).
Proof.
  unfold in_three. rewrite form_substituted, map_map. apply form_same. apply Forall2_map.
  intros j _ v. symmetry. apply lin_of_mean.
Qed.

Lemma in_three_apart (f : nat -> linear) i : form (in_three w f) (aparts_of i) =
  form (of_means w) (map (fun j => apart n (fun i => lin (f j) (map (coordinate_of i) js)) i) [0; 1; 2]%nat).
Proof.
  unfold in_three. rewrite form_substituted, map_map. apply form_same. apply Forall2_map.
  intros j _ v. symmetry. apply lin_of_apart.
Qed.

Lemma in_two_value (f : nat -> linear) : form (in_two w f) means_of =
  form (of_differences w)
    (map (fun j => mean n (fun i => lin (f j) (map (coordinate_of i) js))) [1; 2]%nat).
Proof.
  unfold in_two. rewrite form_substituted, map_map. apply form_same. apply Forall2_map.
  intros j _ v. symmetry. apply lin_of_mean.
Qed.

Lemma in_two_apart (f : nat -> linear) i : form (in_two w f) (aparts_of i) =
  form (of_differences w)
    (map (fun j => apart n (fun i => lin (f j) (map (coordinate_of i) js)) i) [1; 2]%nat).
Proof.
  unfold in_two. rewrite form_substituted, map_map. apply form_same. apply Forall2_map.
  intros j _ v. symmetry. apply lin_of_apart.
Qed.

Lemma lin_own i j v : (j < 4)%nat ->
  inner (lin (unit j) (map (coordinate_of i) js)) v = inner (coordinate_of i j) v.
Proof. intros J. unfold js. destruct j as [|[|[|[|j]]]]; [| | | |lia]; now rewrite lin_unit by (simpl; lia). Qed.

Lemma mean_same (f g : nat -> V) : (forall i, (i < n)%nat -> same (f i) (g i)) ->
  same (mean n f) (mean n g).
Proof. intros E v. rewrite !inner_mean. apply average_ext. intros i I. apply (E i I v). Qed.

Lemma apart_same (f g : nat -> V) i : (forall i, same (f i) (g i)) -> same (apart n f i) (apart n g i).
Proof.
  intros E v. unfold apart. rewrite !inner_minus, (E i v), (mean_same f g (fun j _ => E j) v).
  reflexivity.
Qed.

Lemma lyapunov_is : lyapunov_value = form (in_three w unit) means_of
  + average n (fun i => form (in_two w unit) (aparts_of i)) + mv * at_memory + xv * at_model.
Proof.
  unfold lyapunov_value. rewrite in_three_value. f_equal. f_equal. f_equal.
  - apply form_same, Forall2_map. intros j J. apply mean_same. intros i _ v. symmetry. apply lin_own.
    simpl in J. lia.
  - apply average_ext. intros i _. rewrite in_two_apart. apply form_same, Forall2_map.
    intros j J. apply apart_same. intros i' v. symmetry. apply lin_own. simpl in J. lia.
Qed.

Lemma first_mean : same (mean n (fun i => coordinate_of i 0)) (minus x xs).
Proof.
  intros v. destruct memory_checked as (P & _). rewrite inner_mean.
  exact (average_const n (inner (minus x xs) v) P).
Qed.

Lemma square_first : form (product (unit 0) (unit 0)) means_of = square (minus x xs).
Proof.
  rewrite form_product. unfold square. apply same_inner; intros v;
    unfold means_of; rewrite lin_unit by (simpl; lia); apply first_mean.
Qed.

Lemma at_model_value : at_model = mean_loss n F x - mean_loss n F xs.
Proof.
  unfold at_model, value_of, mean_loss, Rminus.
  rewrite (average_ext n _ (fun i => F i x + (-1 * F i xs + -1 * inner (G i xs) (minus x xs))))
    by (intros; ring).
  rewrite !average_add, !average_scale, <- inner_mean.
  change (mean n (fun i => G i xs)) with (mean_gradient n G xs).
  rewrite (optimal (minus x xs)), inner_zero. ring.
Qed.


(** *** After a round *)

Definition cs (i : nat) : list V := map (coordinate_of i) js.
Definition kept (j i : nat) : V := lin (kept_form c j) (cs i).
Definition fresh (j i : nat) : V := lin (ladd (kept_form c j) (delta_form c j)) (cs i).
Definition after (who : nat -> bool) := memory_round n eta sur G who (x, memory).

Lemma delta_is j i : same (delta kept fresh j i) (lin (delta_form c j) (cs i)).
Proof. intros v. unfold delta, kept, fresh. rewrite inner_minus, lin_ladd. ring. Qed.

Lemma hat_is j i : same (hat p kept fresh j i) (lin (hat_form c j) (cs i)).
Proof.
  intros v. unfold hat, hat_form. rewrite inner_add, inner_scale, (delta_is j i v), lin_ladd, lin_lscale.
  reflexivity.
Qed.

Lemma slope_is : same (mean n (fun i => coordinate_of i 3)) (mean_gradient n G x).
Proof.
  intros v. rewrite inner_mean. unfold mean_gradient. rewrite inner_mean. cbn [coordinate_of].
  rewrite (average_ext n _ (fun i => inner (G i x) v + -1 * inner (G i xs) v))
    by (intros; rewrite inner_minus; ring).
  rewrite average_add, average_scale, <- (inner_mean n (fun i => G i xs)).
  change (mean n (fun i => G i xs)) with (mean_gradient n G xs). rewrite (optimal v), inner_zero. ring.
Qed.

(** The model's step, as a mean over clients. *)
Lemma stepped who : same (minus (fst (after who)) x) (mean n (next kept fresh who 3)).
Proof.
  intros v. destruct memory_checked as (P & _). assert (N : INR n <> 0) by (apply not_0_INR; lia).
  unfold after, memory_round. cbn [fst]. rewrite !inner_minus, inner_scale, inner_add, inner_scale.
  rewrite !inner_mean, inner_total.
  assert (O := optimal v). unfold mean_gradient in O. rewrite inner_mean, inner_zero in O.
  unfold average in O |- *.
  rewrite (sum_ext n (fun i => inner (next kept fresh who 3 i) v) (fun i =>
    - eta * (inner (G i (memory i)) v + -1 * inner (G i xs) v)
    + - (eta * sur * INR n) * inner (if who i then minus (G i x) (G i (memory i)) else zero) v)).
  - rewrite sum_add, !sum_scale, sum_add, sum_scale.
    assert (Z : sum n (fun i => inner (G i xs) v) = 0).
    { apply (Rmult_eq_reg_l (/ INR n)); [rewrite O; ring|now apply Rinv_neq_0_compat]. }
    rewrite Z. field. exact N.
  - intros i _. assert (K : inner (kept 3 i) v = - eta * (inner (G i (memory i)) v + -1 * inner (G i xs) v)).
    { unfold kept. cbn [kept_form]. rewrite lin_lscale, Q2R_opp. unfold cs. rewrite lin_own by lia.
      cbn [coordinate_of]. rewrite inner_minus. unfold eta. ring. }
    unfold next. destruct (who i).
    + unfold fresh. rewrite lin_ladd. fold (kept 3 i). rewrite K. cbn [delta_form].
      rewrite lin_lscale, lin_lminus, Q2R_Qred, Q2R_opp, !Q2R_mult, Q2R_inject. unfold cs.
      rewrite !lin_own by lia. cbn [coordinate_of]. rewrite !inner_minus. fold n eta sur. ring.
    + rewrite K, inner_zero. ring.
Qed.

Lemma next_zero who v : inner (mean n (next kept fresh who 0)) v =
  inner (minus x xs) v + inner (mean n (next kept fresh who 3)) v.
Proof.
  rewrite !inner_mean. rewrite <- (average_const n (inner (minus x xs) v)) by now destruct memory_checked.
  rewrite <- average_add. apply average_ext. intros i _.
  assert (K : inner (kept 0 i) v = inner (minus x xs) v + inner (kept 3 i) v).
  { unfold kept. cbn [kept_form]. rewrite lin_lminus, !lin_lscale, Q2R_opp. unfold cs.
    rewrite !lin_own by lia. cbn [coordinate_of]. ring. }
  unfold next, fresh. destruct (who i); [|exact K].
  rewrite !lin_ladd. fold (kept 0 i) (kept 3 i). rewrite K. cbn [delta_form]. ring.
Qed.

Lemma arrived who : same (minus (fst (after who)) xs) (mean n (next kept fresh who 0)).
Proof. intros v. rewrite next_zero, <- (stepped who v), !inner_minus. ring. Qed.

Lemma remembered who i j : (j = 1 \/ j = 2)%nat ->
  same (match j with
        | 1%nat => minus (G i (snd (after who) i)) (G i xs)
        | _ => minus (snd (after who) i) xs
        end) (next kept fresh who j i).
Proof.
  intros J v. unfold after, memory_round, next, fresh, kept. cbn [snd].
  destruct J as [-> | ->]; cbn [kept_form delta_form]; destruct (who i);
    rewrite ?lin_ladd, ?lin_lminus; unfold cs; rewrite ?lin_own by lia; cbn [coordinate_of];
    rewrite ?inner_minus; ring.
Qed.

Lemma descended who : mean_loss n F (fst (after who)) <= mean_loss n F x
  + (inner (mean n (next kept fresh who 3)) (mean_gradient n G x)
     + L / 2 * square (mean n (next kept fresh who 3))).
Proof.
  destruct memory_checked as (P & S & M & _).
  assert (H := mean_descent L mu S M n F G x (fst (after who)) P interpolated).
  apply Rle_trans with (1 := H). right. unfold square.
  rewrite <- (same_inner _ _ _ _ (stepped who) (stepped who)), <- (stepped who _).
  unfold aim. set (g := mean_gradient n G x). set (y := fst (after who)).
  repeat (rewrite ?inner_minus, ?inner_minus_r, ?inner_scale, ?inner_scale_r).
  rewrite (inner_sym V g y), (inner_sym V g x), (inner_sym V x y). field. lra.
Qed.

Lemma mean_variance_value : Q2R (mean_variance c) =
  (Q2R (two_there c) - p * p) + (p - Q2R (two_there c)) / INR n.
Proof.
  destruct memory_checked as (P & _). assert (N : INR n <> 0) by (apply not_0_INR; lia).
  unfold mean_variance, apart_variance.
  rewrite Q2R_Qred, Q2R_plus, Q2R_minus, Q2R_mult, Q2R_Qred, Q2R_div, Q2R_minus, Q2R_inject
    by (apply Q2R_nonzero; now rewrite Q2R_inject). reflexivity.
Qed.

Lemma apart_variance_value : Q2R (apart_variance c) = (p - Q2R (two_there c)) / INR n.
Proof.
  destruct memory_checked as (P & _). assert (N : INR n <> 0) by (apply not_0_INR; lia).
  unfold apart_variance. rewrite Q2R_Qred, Q2R_div, Q2R_minus, Q2R_inject
    by (apply Q2R_nonzero; now rewrite Q2R_inject). reflexivity.
Qed.

Lemma own_variance_value : Q2R (own_variance c) = p * (1 - p).
Proof. unfold own_variance. now rewrite Q2R_Qred, Q2R_mult, Q2R_minus, Q2R_1. Qed.

Lemma of_step_value : Q2R (of_step c w) = xv * (L / 2).
Proof.
  unfold of_step. rewrite Q2R_Qred, Q2R_div, Q2R_mult by (intros E; discriminate E).
  replace (Q2R 2) with 2 by (unfold Q2R; simpl; lra). fold L xv. unfold Rdiv. ring.
Qed.

End State.

Lemma after_bound x memory :
  expectation draws (fun who => lyapunov_value (fst (after x memory who)) (snd (after x memory who))) <=
  form (after_means c w) (means_of x memory)
  + average n (fun i => form (after_differences c w) (aparts_of x memory i))
  + mv * (p * at_model x + (1 - p) * at_memory memory) + xv * at_model x.
Proof.
  destruct memory_checked as (P & _ & _ & XV & _).
  set (nx := next (kept x memory) (fresh x memory)). set (g := mean_gradient n G x).
  apply Rle_trans with (expectation draws (fun who =>
    form (of_means w) (map (fun j => mean n (nx who j)) [0; 1; 2]%nat)
    + (average n (fun i => form (of_differences w) (map (fun j => apart n (nx who j) i) [1; 2]%nat))
    + (mv * average n (fun i => value_of i (memory i)
        + (value_of i x - value_of i (memory i)) * indicator (who i))
    + (xv * at_model x * 1 + (xv * inner (mean n (nx who 3%nat)) g
       + xv * (L / 2) * inner (mean n (nx who 3%nat)) (mean n (nx who 3%nat)))))))).
  - apply expectation_le; [apply (there_certain _ _ _ _ there)|]. intros who.
    unfold lyapunov_value.
    assert (E1 : form (of_means w) (map (fun j => mean n (fun i =>
        coordinate_of (fst (after x memory who)) (snd (after x memory who)) i j)) [0; 1; 2]%nat) =
      form (of_means w) (map (fun j => mean n (nx who j)) [0; 1; 2]%nat)).
    { apply form_same, Forall2_map. intros [|j] J; [intros v|].
      - rewrite (first_mean _ _ v). apply arrived.
      - apply mean_same. intros i _ u. assert (J' : (S j = 1 \/ S j = 2)%nat) by (simpl in J; lia).
        destruct J' as [J'|J']; injection J' as ->;
          [exact (remembered x memory who i 1%nat (or_introl eq_refl) u)
          |exact (remembered x memory who i 2%nat (or_intror eq_refl) u)]. }
    assert (E2 : forall i, form (of_differences w) (map (fun j => apart n (fun i =>
        coordinate_of (fst (after x memory who)) (snd (after x memory who)) i j) i) [1; 2]%nat) =
      form (of_differences w) (map (fun j => apart n (nx who j) i) [1; 2]%nat)).
    { intros i. apply form_same, Forall2_map. intros j J. apply apart_same. intros i' u.
      assert (J' : (j = 1 \/ j = 2)%nat) by (simpl in J; lia).
      destruct J' as [-> | ->];
        [exact (remembered x memory who i' 1%nat (or_introl eq_refl) u)
        |exact (remembered x memory who i' 2%nat (or_intror eq_refl) u)]. }
    rewrite E1, (average_ext n _ _ (fun i _ => E2 i)).
    assert (E3 : at_memory (snd (after x memory who)) = average n (fun i => value_of i (memory i)
        + (value_of i x - value_of i (memory i)) * indicator (who i))).
    { unfold at_memory. apply average_ext. intros i _. unfold after, memory_round. cbn [snd].
      destruct (who i); simpl; ring. }
    rewrite E3.
    assert (D := descended x memory who). fold nx g in D. unfold square in D.
    assert (T : at_model (fst (after x memory who)) <= at_model x + (inner (mean n (nx who 3%nat)) g
      + L / 2 * inner (mean n (nx who 3%nat)) (mean n (nx who 3%nat))))
      by (rewrite !at_model_value; lra).
    apply (Rmult_le_compat_l xv) in T; [|exact XV]. lra.
  - right. rewrite !expectation_add, !expectation_scale. unfold nx.
    rewrite (mean_form draws n p _ _ _ P there), (apart_form draws n p _ _ _ P there).
    rewrite (mean_first draws n p _ _ _ there), (mean_gram draws n p _ _ _ P there).
    rewrite (certain_there draws n p _ there).
    assert (V1 : expectation draws (fun who => average n (fun i => value_of i (memory i)
        + (value_of i x - value_of i (memory i)) * indicator (who i))) =
      p * at_model x + (1 - p) * at_memory memory).
    { unfold average at 1. rewrite expectation_scale, expectation_sum.
      unfold at_model, at_memory. rewrite <- !average_scale, <- average_add. unfold average. f_equal.
      apply sum_ext. intros i I.
      rewrite (expectation_ext draws _ (fun who => value_of i (memory i) * 1
        + (value_of i x - value_of i (memory i)) * indicator (who i))) by (intros; ring).
      rewrite expectation_add, !expectation_scale, (certain_there draws n p _ there),
        (there_one _ _ _ _ there i I). ring. }
    rewrite V1.
    unfold after_means, after_differences.
    rewrite !form_qadd, !form_qscale, form_both, !form_product, !in_three_value, !in_two_value.
    set (hats := hat p (kept x memory) (fresh x memory)).
    set (deltas := delta (kept x memory) (fresh x memory)).
    assert (mh : forall j, same (mean n (fun i => lin (hat_form c j) (map (coordinate_of x memory i) js)))
      (mean n (hats j))).
    { intros j. apply mean_same. intros i _ v. symmetry. apply hat_is. }
    assert (md : forall j, same (mean n (fun i => lin (delta_form c j) (map (coordinate_of x memory i) js)))
      (mean n (deltas j))).
    { intros j. apply mean_same. intros i _ v. symmetry. apply delta_is. }
    assert (ah : forall j i, same (apart n (fun i => lin (hat_form c j) (map (coordinate_of x memory i) js)) i)
      (apart n (hats j) i)).
    { intros j i. apply apart_same. intros i' v. symmetry. apply hat_is. }
    assert (ad : forall j i, same (apart n (fun i => lin (delta_form c j) (map (coordinate_of x memory i) js)) i)
      (apart n (deltas j) i)).
    { intros j i. apply apart_same. intros i' v. symmetry. apply delta_is. }
    rewrite !(form_same _ _ _ (Forall2_map _ _ _ (fun j _ => mh j))).
    rewrite !(form_same _ _ _ (Forall2_map _ _ _ (fun j _ => md j))).
    assert (lh : same (lin (hat_form c 3) (means_of x memory)) (mean n (hats 3%nat)))
      by (intros v; rewrite <- (mh 3%nat v); symmetry; apply lin_of_mean).
    assert (ld : same (lin (delta_form c 3) (means_of x memory)) (mean n (deltas 3%nat)))
      by (intros v; rewrite <- (md 3%nat v); symmetry; apply lin_of_mean).
    assert (lu : same (lin (unit 3) (means_of x memory)) g).
    { intros v. unfold means_of, js. rewrite lin_unit by (simpl; lia). apply slope_is. }
    rewrite (same_inner _ _ _ _ lu lh), (same_inner _ _ _ _ lh lh), (same_inner _ _ _ _ ld ld).
    rewrite (average_ext n (fun i => form (qadd _ _) (aparts_of x memory i)) (fun i =>
      form (of_differences w) (map (fun j => apart n (hats j) i) [1; 2]%nat)
      + (Q2R (apart_variance c) * form (of_means w) (map (fun j => apart n (deltas j) i) [0; 1; 2]%nat)
      + (Q2R (Qred (own_variance c - apart_variance c))
          * form (of_differences w) (map (fun j => apart n (deltas j) i) [1; 2]%nat)
      + Q2R (Qred (of_step c w * apart_variance c))
          * inner (apart n (deltas 3%nat) i) (apart n (deltas 3%nat) i))))).
    2: { intros i _. rewrite !form_qadd, !form_qscale, form_product, in_three_apart, !in_two_apart.
         rewrite !(form_same _ _ _ (Forall2_map _ _ _ (fun j _ => ah j i))).
         rewrite !(form_same _ _ _ (Forall2_map _ _ _ (fun j _ => ad j i))).
         assert (la : same (lin (delta_form c 3) (aparts_of x memory i)) (apart n (deltas 3%nat) i))
           by (intros v; rewrite <- (ad 3%nat i v); symmetry; apply lin_of_apart).
         now rewrite (same_inner _ _ _ _ la la). }
    rewrite !average_add, !average_scale, !Q2R_Qred, !Q2R_minus, !Q2R_mult.
    rewrite mean_variance_value, apart_variance_value, own_variance_value, of_step_value.
    rewrite (inner_sym V g). fold xv. ring.
Qed.

Lemma memory_blocks :
  values_fit (positive_pairs w) (memory_value w) (model_value w) = true /\
  values_fit (decrease_pairs w)
    (Qred (each_round c * memory_value w - memory_value w * (1 - chance c)))
    (Qred (each_round c * model_value w - memory_value w * chance c - model_value w - each_gap c)) = true /\
  (if from_zero c then values_fit (begin_pairs w) (- memory_value w) (- model_value w)
   else values_fit (begin_pairs w) 0 (Qred (- (memory_value w + model_value w)))) = true /\
  is_sum_of_squares (qadd (qadd (in_three w unit) (qscale (-1) (nearness c)))
    (all_conditions c (positive_pairs w))) (positive_means w) = true /\
  is_sum_of_squares (substituted (qadd (in_two w unit) (all_conditions c (positive_pairs w)))
    apart_forms) (positive_differences w) = true /\
  is_sum_of_squares (qadd (qadd (qscale (each_round c) (in_three w unit)) (qscale (-1) (after_means c w)))
    (all_conditions c (decrease_pairs w))) (decrease_means w) = true /\
  is_sum_of_squares (substituted (qadd (qadd (qscale (each_round c) (in_two w unit))
    (qscale (-1) (after_differences c w))) (all_conditions c (decrease_pairs w))) apart_forms)
    (decrease_differences w) = true /\
  is_sum_of_squares (substituted (qadd (qadd (qscale (at_start c) (product (unit 0) (unit 0)))
    (qadd (spread_at_start c) (qscale (-1) (in_three w unit)))) (all_conditions c (begin_pairs w)))
    (start_means c)) (begin_means w) = true /\
  is_sum_of_squares (substituted (qadd (qadd (spread_at_start c) (qscale (-1) (in_two w unit)))
    (all_conditions c (begin_pairs w))) (start_differences c)) (begin_differences w) = true.
Proof.
  assert (H := ok). unfold proves_memory in H.
  do 9 (apply andb_prop in H; destruct H as [H ?]). repeat split; assumption.
Qed.

Lemma apart_forms_are x memory i :
  Forall2 same (map (fun f => lin f (aparts_of x memory i)) apart_forms) (aparts_of x memory i).
Proof.
  unfold aparts_of at 2, js, apart_forms. cbn [map].
  repeat apply Forall2_cons; [| | | |constructor]; intros v;
    try (unfold aparts_of, js; rewrite lin_unit by (simpl; lia); reflexivity).
  rewrite lin_nil. unfold apart. rewrite inner_minus, (first_mean x memory v). cbn [coordinate_of]. ring.
Qed.

Lemma squares_apart x memory A l : is_sum_of_squares (substituted A apart_forms) l = true ->
  forall i, 0 <= form A (aparts_of x memory i).
Proof.
  intros S i. assert (H := sum_of_squares _ _ (aparts_of x memory i) S).
  now rewrite form_substituted, (form_same _ _ _ (apart_forms_are x memory i)) in H.
Qed.

Lemma minus_one : Q2R (-1) = -1.
Proof. unfold Q2R. simpl. lra. Qed.

Lemma positive_value x memory :
  (if of_gap c then 0 else square (minus x xs)) <= lyapunov_value x memory.
Proof.
  destruct memory_blocks as (E & _ & _ & A & B & _).
  assert (H := inequality x memory _ _ _ _ _ E (sum_of_squares _ _ _ A)
    (fun i => squares_apart x memory _ _ B i)).
  rewrite lyapunov_is. rewrite form_qadd, form_qscale, minus_one in H. unfold nearness in H.
  destruct (of_gap c); [|rewrite square_first in H]; unfold mv, xv; [|lra].
  unfold form at 2 in H. rewrite bil_nil in H. lra.
Qed.

Lemma average_difference a b A B (vs : nat -> list V) :
  average n (fun i => form (qadd (qscale a A) (qscale b B)) (vs i)) =
  Q2R a * average n (fun i => form A (vs i)) + Q2R b * average n (fun i => form B (vs i)).
Proof.
  rewrite <- !average_scale, <- average_add. apply average_ext. intros i _.
  now rewrite form_qadd, !form_qscale.
Qed.

Lemma decreases x memory :
  expectation draws (fun who => lyapunov_value (fst (after x memory who)) (snd (after x memory who))) <=
  Q2R (each_round c) * lyapunov_value x memory - Q2R (each_gap c) * at_model x.
Proof.
  destruct memory_blocks as (_ & E & _ & _ & _ & A & B & _).
  assert (H := inequality x memory _ _ _ _ _ E (sum_of_squares _ _ _ A)
    (fun i => squares_apart x memory _ _ B i)).
  apply Rle_trans with (1 := after_bound x memory). rewrite lyapunov_is.
  rewrite form_qadd, !form_qscale, average_difference, minus_one, !Q2R_Qred, !Q2R_minus, !Q2R_mult,
    Q2R_minus, Q2R_1 in H. fold p mv xv in H. lra.
Qed.

Lemma begins x memory :
  (if from_zero c then forall i, (i < n)%nat -> same (G i (memory i)) zero else memory = (fun _ => x)) ->
  lyapunov_value x memory <= Q2R (at_start c) * square (minus x xs) + Q2R (dissimilarity c) * (d * d).
Proof.
  intros Start. destruct memory_blocks as (_ & _ & E & _ & _ & _ & _ & A & B).
  destruct memory_checked as (P & _ & _ & _ & _ & D & _).
  assert (M : Forall2 same (map (fun f => lin f (means_of x memory)) (start_means c)) (means_of x memory)).
  { assert (own : forall j v, (j < 4)%nat -> inner (lin (unit j) (means_of x memory)) v =
      inner (mean n (fun i => coordinate_of x memory i j)) v).
    { intros j v J. unfold means_of, js. destruct j as [|[|[|[|j]]]]; [| | | |lia];
        now rewrite lin_unit by (simpl; lia). }
    unfold means_of at 2, js, start_means. destruct (from_zero c); cbn [map].
    - repeat apply Forall2_cons; [| | | |constructor]; intros v; try (apply own; lia).
      rewrite lin_nil, inner_mean. unfold average.
      assert (O := optimal v). unfold mean_gradient in O. rewrite inner_mean, inner_zero in O.
      unfold average in O.
      rewrite (sum_ext n _ (fun i => -1 * inner (G i xs) v)).
      + rewrite sum_scale. rewrite <- Rmult_assoc, (Rmult_comm (/ INR n)), Rmult_assoc, O. ring.
      + intros i I. cbn [coordinate_of]. rewrite inner_minus, (Start i I v), inner_zero. ring.
    - subst memory. repeat apply Forall2_cons; [| | | |constructor]; intros v; rewrite own by lia;
        reflexivity. }
  assert (N : forall i, Forall2 same (map (fun f => lin f (aparts_of x memory i)) (start_differences c))
      (aparts_of x memory i)).
  { intros i. unfold start_differences. destruct (from_zero c); [apply apart_forms_are|].
    subst memory. assert (Y := apart_forms_are x (fun _ => x) i).
    assert (own : forall v, inner (lin (unit 3) (aparts_of x (fun _ => x) i)) v =
      inner (apart n (fun i => coordinate_of x (fun _ => x) i 3) i) v)
      by (intros v; unfold aparts_of, js; now rewrite lin_unit by (simpl; lia)).
    cbn [map apart_forms] in Y |- *. unfold aparts_of at 5, js in Y. unfold aparts_of at 5, js.
    cbn [map] in Y |- *. inversion Y as [|? ? ? ? Y0 Y']. subst.
    repeat apply Forall2_cons; [exact Y0| | | |constructor]; intros v.
    - rewrite own. reflexivity.
    - exact (Y0 v).
    - rewrite own. reflexivity. }
  assert (HA := sum_of_squares _ _ (means_of x memory) A).
  rewrite form_substituted, (form_same _ _ _ M) in HA.
  assert (HB : forall i, 0 <= form (qadd (qadd (spread_at_start c) (qscale (-1) (in_two w unit)))
      (all_conditions c (begin_pairs w))) (aparts_of x memory i)).
  { intros i. assert (H := sum_of_squares _ _ (aparts_of x memory i) B).
    now rewrite form_substituted, (form_same _ _ _ (N i)) in H. }
  assert (T : average n (fun i => form (qadd (spread_at_start c) (qscale (-1) (in_two w unit)))
      (aparts_of x memory i)) = average n (fun i => form (spread_at_start c) (aparts_of x memory i))
      + -1 * average n (fun i => form (in_two w unit) (aparts_of x memory i))).
  { rewrite <- average_scale, <- average_add. apply average_ext. intros i _.
    now rewrite form_qadd, form_qscale, minus_one. }
  assert (X : form (spread_at_start c) (means_of x memory)
      + average n (fun i => form (spread_at_start c) (aparts_of x memory i))
      <= Q2R (dissimilarity c) * (d * d)).
  { assert (Y := average_form n (coordinate_of x memory) (spread_at_start c) js P).
    fold (means_of x memory) in Y. unfold aparts_of. rewrite <- Y. unfold spread_at_start.
    destruct (from_zero c).
    - rewrite (average_ext n _ (fun i => Q2R (dissimilarity c) * square (G i xs))).
      + rewrite average_scale. now apply Rmult_le_compat_l.
      + intros i I. rewrite form_qscale, form_product. f_equal. unfold square.
        rewrite (same_inner _ _ _ _ (fun v => lin_own x memory i 1 v ltac:(lia))
          (fun v => lin_own x memory i 1 v ltac:(lia))). cbn [coordinate_of].
        repeat (rewrite ?inner_minus, ?inner_minus_r). rewrite !(Start i I _).
        rewrite (inner_sym V (G i xs) (G i (memory i))), !(Start i I _), !inner_zero. ring.
    - rewrite (average_ext n _ (fun _ => 0)), average_const by (try exact P; reflexivity).
      apply Rmult_le_pos; [exact D|apply Rle_0_sqr]. }
  rewrite lyapunov_is.
  destruct (from_zero c) eqn:Z.
  - assert (H := inequality x memory _ _ _ _ _ E HA HB).
    rewrite T in H. rewrite !form_qadd, !form_qscale, square_first, minus_one, !Q2R_opp in H.
    fold mv xv in H. lra.
  - assert (H := inequality x memory _ _ _ _ _ E HA HB).
    rewrite T in H. rewrite !form_qadd, !form_qscale, square_first, minus_one, Q2R_Qred, Q2R_opp,
      Q2R_plus, Q2R_0 in H. fold mv xv in H.
    assert (Q : at_memory memory = at_model x) by (unfold at_memory, at_model; now rewrite Start).
    rewrite Q in *. lra.
Qed.

End Proof.

(** Whatever the checker accepts holds. *)
Theorem one_memory c w : proves_memory c w = true -> remembers c.
Proof.
  intros ok V F G x xs d memory draws iterates I O A T Start First Law Tower r.
  set (value := fun state : V * (nat -> V) => lyapunov_value c w V F G xs (fst state) (snd state)).
  assert (B := all_rounds_gain iterates value (fun state => expectation draws (fun who =>
      value (memory_round (pool c) (Q2R (step_size c)) (Q2R (surprise c)) G who state)))
    (fun state => mean_loss (pool c) F (fst state) - mean_loss (pool c) F xs)
    (Q2R (each_round c)) (Q2R (each_gap c)) 0).
  destruct (memory_checked c w ok) as (_ & _ & _ & _ & R & _ & none).
  specialize (B R Law (Tower value)).
  assert (D : forall state, expectation draws (fun who =>
      value (memory_round (pool c) (Q2R (step_size c)) (Q2R (surprise c)) G who state)) <=
    Q2R (each_round c) * value state - Q2R (each_gap c)
      * (mean_loss (pool c) F (fst state) - mean_loss (pool c) F xs) + 0).
  { intros [y m]. unfold value. cbn [fst snd].
    rewrite <- (at_model_value c V F G xs O y), Rplus_0_r.
    exact (decreases c w ok V F G xs draws I O T y m). }
  specialize (B D r).
  assert (E : expectation (iterates 0%nat) value <=
    Q2R (at_start c) * square (minus x xs) + Q2R (dissimilarity c) * (d * d)).
  { rewrite First. unfold expectation, value. cbn [fold_right fst snd].
    assert (H := begins c w ok V F G xs d I O A x memory Start). lra. }
  apply (Rmult_le_compat_l (Q2R (each_round c) ^ r)) in E; [|now apply pow_le].
  assert (N : expectation (iterates r) (fun state =>
      if of_gap c then 0 else square (minus (fst state) xs)) <= expectation (iterates r) value).
  { apply expectation_le; [apply Law|]. intros [y m].
    exact (positive_value c w ok V F G xs I y m). }
  destruct (of_gap c).
  - rewrite (expectation_zero (iterates r)) in N. lra.
  - rewrite (none eq_refl) in B. lra.
Qed.

Ltac memory_in_numbers H :=
  cbv beta iota delta [remembers pool chance two_there step_size surprise from_zero of_gap all_smoothness
    all_convexity each_round each_gap at_start dissimilarity] in H; in_numbers H.
