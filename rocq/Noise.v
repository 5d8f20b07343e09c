(** Noise of clients' gradients: random vectors are a space again, in which forms split into those of
    means and those of what is random; and what a round adds that clients draw independently. *)

From Coq Require Import Reals QArith Qreals List Lra Lia Arith.
From fltheory Require Import Space Forms Round OneRound Sound Draw.
Import ListNotations.
Open Scope R_scope.

Section Random.
Context {A : Type} {V : space}.
Variable (l : law A).
Hypothesis proper : probabilities l.
Implicit Types (f g : A -> V).

Lemma inner_expected f w : inner (expected l f) w = expectation l (fun o => inner (f o) w).
Proof.
  clear proper. induction l as [|[p o] r IH]; simpl; [apply inner_zero|].
  now rewrite inner_add, inner_scale, IH.
Qed.

Lemma expected_ext f g : (forall o, f o = g o) -> expected l f = expected l g.
Proof.
  clear proper. intros H. unfold expected. induction l as [|p r IH]; simpl; [reflexivity|].
  now rewrite H, IH.
Qed.

Definition vectors : space.
Proof.
  refine (Space (A -> V) (fun _ => zero) (fun f g o => add (f o) (g o)) (fun a f o => scale a (f o))
    (fun f g => expectation l (fun o => inner (f o) (g o))) _ _ _ _ _); intros.
  - apply expectation_ext. intros. apply inner_sym.
  - rewrite (expectation_ext l _ (fun _ => 0)) by (intros; apply inner_zero). apply expectation_zero.
  - rewrite <- expectation_add. apply expectation_ext. intros. apply inner_add.
  - rewrite <- expectation_scale. apply expectation_ext. intros. apply inner_scale.
  - rewrite <- (expectation_zero l). apply expectation_le; [apply proper|].
    intros. apply inner_square.
Defined.

Definition random_part f : A -> V := fun o => minus (f o) (expected l f).

Lemma same_outcomes f g : (forall p, In p l -> same (f (snd p)) (g (snd p))) ->
  same (V := vectors) f g.
Proof. intros H w. apply expectation_ext. intros p I. now apply H. Qed.

Lemma expected_constant (v : V) : same (expected l (fun _ => v)) v.
Proof.
  intros w. rewrite inner_expected.
  rewrite (expectation_ext l _ (fun _ => inner v w * 1)) by (intros; ring).
  rewrite expectation_scale, (proj2 proper). ring.
Qed.

(** What does not depend on the outcome has no random part. *)
Lemma random_part_constant f v : (forall p, In p l -> same (f (snd p)) v) ->
  same (V := vectors) (random_part f) zero.
Proof.
  intros H. apply same_outcomes. intros p I w. unfold random_part.
  rewrite inner_minus, inner_expected, (H p I w).
  rewrite (expectation_ext l _ (fun _ => inner v w)) by (intros q J; apply (H q J)).
  rewrite <- (inner_expected (fun _ => v)), (expected_constant v w). simpl. rewrite inner_zero. ring.
Qed.

Lemma expectation_inner f g : expectation l (fun o => inner (f o) (g o)) =
  inner (expected l f) (expected l g)
  + expectation l (fun o => inner (random_part f o) (random_part g o)).
Proof.
  rewrite (expectation_ext l (fun o => inner (random_part f o) (random_part g o))
    (fun o => inner (f o) (g o) + (-1 * inner (f o) (expected l g)
      + (-1 * inner (g o) (expected l f) + inner (expected l f) (expected l g) * 1)))).
  2: { intros p _. unfold random_part. rewrite inner_minus, !inner_minus_r.
       rewrite (inner_sym V (expected l f) (g (snd p))). ring. }
  rewrite !expectation_add, !expectation_scale, (proj2 proper), <- !inner_expected.
  rewrite (inner_sym V (expected l g)). ring.
Qed.

Lemma lin_expected r (fs : list vectors) :
  same (lin r (map (expected l) fs)) (expected l (lin (V := vectors) r fs)).
Proof.
  revert r. induction fs as [|f fs IH]; intros [|a r] w; simpl;
    try (symmetry; apply (expected_constant zero w)).
  rewrite inner_add, inner_scale, (IH r w), !inner_expected, <- expectation_scale, <- expectation_add.
  apply expectation_ext. intros p _. now rewrite inner_add, inner_scale.
Qed.

Lemma lin_random_part r (fs : list vectors) :
  same (V := vectors) (lin (V := vectors) r (map random_part fs)) (random_part (lin (V := vectors) r fs)).
Proof.
  apply same_outcomes. intros p _ w. unfold random_part at 2.
  rewrite inner_minus, <- (lin_expected r fs w). generalize (snd p). clear p. intros o.
  revert r. induction fs as [|f fs IH]; intros [|a r]; simpl; rewrite ?inner_zero; try ring.
  rewrite !inner_add, !inner_scale, IH. unfold random_part. rewrite inner_minus. ring.
Qed.

Theorem form_split B (fs : list vectors) : form (V := vectors) B fs =
  form B (map (expected l) fs) + form (V := vectors) B (map random_part fs).
Proof.
  unfold form.
  assert (H : forall us : list vectors, bil (V := vectors) B us fs =
    bil B (map (expected l) us) (map (expected l) fs)
    + bil (V := vectors) B (map random_part us) (map random_part fs)); [|apply H].
  induction B as [|r B IH]; intros [|u us]; cbn [bil map]; try ring.
  rewrite IH, (inner_sym V (expected l u)), (lin_expected r fs (expected l u)).
  rewrite (inner_sym vectors (random_part u)), (lin_random_part r fs (random_part u)).
  rewrite (inner_sym V _ (expected l u)), (inner_sym vectors _ (random_part u)).
  assert (E := expectation_inner u (lin (V := vectors) r fs)).
  change (expectation l (fun o => inner (u o) (lin (V := vectors) r fs o)))
    with (inner (s := vectors) u (lin (V := vectors) r fs)) in E.
  change (expectation l (fun o => inner (random_part u o) (random_part (lin (V := vectors) r fs) o)))
    with (inner (s := vectors) (random_part u) (random_part (lin (V := vectors) r fs))) in E.
  rewrite E. ring.
Qed.

End Random.

(** ** A client's local steps *)

Section Local.
Context {V : space}.
Variables (l : law (nat -> nat -> V)) (n k : nat) (rho eta : R) (G : nat -> V -> V).
Variables (seen : (nat -> nat -> V) -> nat -> nat -> V -> V) (x xs : V).
(** Clients' gradients at the optimum, if it is spoken of. *)
Variable star : nat -> V.
Hypothesis errors : noise_of_clients l n (S k) rho.
Hypothesis sees : forall p i b y, In p l -> same (seen (snd p) i b y) (add (G i y) (snd p i b)).
Hypothesis fresh : forall xi xi' i b y, xi i b = xi' i b -> seen xi i b y = seen xi' i b y.

Let P : probabilities l := of_probabilities _ _ _ _ errors.
Let W : space := vectors (V := V) l P.

Definition visited (xi : nat -> nat -> V) (i a : nat) : V :=
  if (a <=? k)%nat then local_sgd eta (seen xi i) a x else xs.
Definition slope_at (i a : nat) : W := fun xi =>
  if (a <=? k)%nat then G i (visited xi i a) else star i.
Definition error_at (i b : nat) : W := fun xi => xi i b.
Definition change (i : nat) : W := fun xi => minus (local_sgd eta (seen xi i) (S k) x) x.

Lemma walk p i a w : In p l -> (a <= S k)%nat ->
  inner (minus (local_sgd eta (seen (snd p) i) a x) xs) w =
  inner (minus x xs) w
  - eta * sum a (fun b => inner (slope_at i b (snd p)) w + inner (error_at i b (snd p)) w).
Proof.
  intros I. induction a as [|a IH]; intros L; simpl; [ring|].
  rewrite inner_minus, inner_minus, inner_scale, (sees p i a _ I), inner_add.
  assert (H := IH ltac:(lia)). rewrite inner_minus in H.
  unfold slope_at at 2, visited, error_at at 2. destruct (Nat.leb_spec a k); [|lia]. lra.
Qed.

Lemma change_at p i w : In p l -> inner (change i (snd p)) w =
  - eta * sum (S k) (fun b => inner (slope_at i b (snd p)) w + inner (error_at i b (snd p)) w).
Proof.
  intros I. assert (H := walk p i (S k) w I (le_n _)). rewrite !inner_minus in H.
  unfold change. rewrite inner_minus. lra.
Qed.

(** Where a client is after some steps is a function of its noise up to these. *)
Lemma visited_past xi i a m : (a <= m)%nat ->
  local_sgd eta (seen (fun _ b => nth b (map (xi i) (seq 0 m)) zero) i) a x =
  local_sgd eta (seen xi i) a x.
Proof.
  induction a as [|a IH]; intros L; simpl; [reflexivity|].
  rewrite IH by lia. f_equal. f_equal. apply fresh. now rewrite nth_map_seq.
Qed.

Lemma no_mean i b : (i < n)%nat -> (b <= k)%nat -> same (expected l (error_at i b)) zero.
Proof.
  intros I B w. rewrite inner_expected, inner_zero.
  exact (without_bias _ _ _ _ errors i b (fun _ => w) I ltac:(lia)).
Qed.

Lemma error_random_part i b : (i < n)%nat -> (b <= k)%nat ->
  same (V := W) (random_part l (error_at i b)) (error_at i b).
Proof.
  intros I B. apply same_outcomes. intros p _ w. unfold random_part.
  rewrite inner_minus, (no_mean i b I B w), inner_zero. ring.
Qed.

Lemma error_slope i b a : (i < n)%nat -> (a <= b <= k)%nat ->
  inner (s := W) (error_at i b) (random_part l (slope_at i a)) = 0.
Proof.
  intros I B. cbn [inner W vectors]. unfold random_part.
  rewrite (expectation_ext l _ (fun xi => inner (xi i b) (slope_at i a xi)
    + -1 * inner (error_at i b xi) (expected l (slope_at i a))))
    by (intros; rewrite inner_minus_r; unfold error_at; ring).
  rewrite expectation_add, expectation_scale, <- inner_expected, (no_mean i b I ltac:(lia) _),
    inner_zero.
  rewrite (expectation_ext l _ (fun xi => inner (xi i b) (G i (local_sgd eta
    (seen (fun _ c => nth c (map (xi i) (seq 0 b)) zero) i) a x)))).
  - rewrite (without_bias _ _ _ _ errors i b
      (fun past => G i (local_sgd eta (seen (fun _ c => nth c past zero) i) a x))) by lia. ring.
  - intros p _. rewrite visited_past by lia. unfold slope_at, visited.
    destruct (Nat.leb_spec a k); [reflexivity|lia].
Qed.

Lemma error_error i b a : (i < n)%nat -> (a < b <= k)%nat ->
  inner (s := W) (error_at i b) (error_at i a) = 0.
Proof.
  intros I B. cbn [inner W vectors]. unfold error_at.
  rewrite (expectation_ext l _ (fun xi => inner (xi i b) (nth a (map (xi i) (seq 0 b)) zero))).
  - exact (without_bias _ _ _ _ errors i b (fun past => nth a past zero) I ltac:(lia)).
  - intros p _. now rewrite nth_map_seq by lia.
Qed.

(** What is random: the gradients at x_1 .. x_k, the noise before the last step. *)
Definition fluctuation (i j : nat) : W :=
  if (j <? k)%nat then random_part l (slope_at i (S j)) else error_at i (j - k).
Definition fluctuations (i : nat) : list W := map (fluctuation i) (seq 0 (k + k)).

Lemma first_is_certain i : same (V := W) (random_part l (slope_at i 0)) zero.
Proof. apply (random_part_constant l P _ (G i x)). intros p _ w. reflexivity. Qed.

Lemma last_is_certain i : same (V := W) (random_part l (slope_at i (S k))) zero.
Proof.
  apply (random_part_constant l P _ (star i)). intros p _ w. unfold slope_at.
  destruct (Nat.leb_spec (S k) k); [lia|reflexivity].
Qed.

Lemma sum_first m f : sum (S m) f = f 0%nat + sum m (fun b => f (S b)).
Proof. induction m as [|m IH]; simpl in *; [ring|]. rewrite IH. ring. Qed.

Lemma change_random_part i : (i < n)%nat -> same (V := W) (random_part l (change i))
  (scale (- eta) (add (lin (V := W) (ones (k + k)) (fluctuations i)) (error_at i k))).
Proof.
  intros I w. transitivity (- eta * sum (S k) (fun b =>
    inner (s := W) (random_part l (slope_at i b)) w + inner (s := W) (error_at i b) w)).
  - transitivity (- eta * sum (S k) (fun b =>
      inner (s := W) (random_part l (slope_at i b)) w
      + inner (s := W) (random_part l (error_at i b)) w)).
    + cbn [inner W vectors].
      rewrite (expectation_ext l _ (fun xi => - eta * sum (S k) (fun b =>
        inner (random_part l (slope_at i b) xi) (w xi) + inner (random_part l (error_at i b) xi) (w xi)))).
      * rewrite expectation_scale, expectation_sum. f_equal. apply sum_ext. intros b _.
        now rewrite expectation_add.
      * intros p J. unfold random_part at 1. rewrite inner_minus, (change_at p i _ J), inner_expected.
        rewrite (expectation_ext l _ (fun xi => - eta * sum (S k) (fun b =>
          inner (slope_at i b xi) (w (snd p)) + inner (error_at i b xi) (w (snd p)))))
          by (intros q Q; now apply change_at).
        rewrite expectation_scale, expectation_sum.
        rewrite <- Rmult_minus_distr_l. f_equal.
        assert (D : forall m f g, sum m f - sum m g = sum m (fun b => f b - g b)).
        { induction m; intros; simpl; [ring|]. rewrite <- IHm. ring. }
        rewrite D. apply sum_ext. intros b _. unfold random_part.
        rewrite !inner_minus, !inner_expected, expectation_add. ring.
    + f_equal. apply sum_ext. intros b B. now rewrite (error_random_part i b I ltac:(lia) w).
  - rewrite inner_scale, inner_add. f_equal. unfold ones, fluctuations.
    rewrite lin_repeat, Q2R_1, Rmult_1_l, sum_split by lia. rewrite sum_add.
    rewrite (sum_first k (fun b => inner (s := W) (random_part l (slope_at i b)) w)).
    rewrite (first_is_certain i w), inner_zero. cbn [sum].
    rewrite (sum_ext k (fun j => inner (s := W) (fluctuation i (0 + j)) w)
      (fun j => inner (s := W) (random_part l (slope_at i (S j))) w)).
    2: { intros j J. unfold fluctuation. cbn [Nat.add]. destruct (Nat.ltb_spec j k); [reflexivity|lia]. }
    rewrite (sum_ext k (fun j => inner (s := W) (fluctuation i (0 + (k + j))) w)
      (fun j => inner (s := W) (error_at i j) w)).
    2: { intros j J. unfold fluctuation. cbn [Nat.add]. destruct (Nat.ltb_spec (k + j) k); [lia|].
         now replace (k + j - k)%nat with j by lia. }
    ring.
Qed.

Lemma change_variance i : (i < n)%nat -> square (V := W) (random_part l (change i)) <=
  eta * eta * (square (V := W) (lin (V := W) (ones (k + k)) (fluctuations i)) + rho * rho).
Proof.
  intros I. assert (E := change_random_part i I). unfold square at 1.
  rewrite (same_inner (V := W) _ _ _ _ E E), inner_scale, inner_scale_r, !inner_add, !inner_add_r.
  assert (Z : inner (s := W) (lin (V := W) (ones (k + k)) (fluctuations i)) (error_at i k) = 0).
  { unfold ones, fluctuations. rewrite lin_repeat, Q2R_1, Rmult_1_l by lia.
    rewrite (sum_ext _ _ (fun _ => 0)), sum_const; [ring|]. intros j J. cbn [Nat.add].
    rewrite inner_sym. unfold fluctuation. destruct (Nat.ltb_spec j k).
    - apply error_slope; [exact I|lia].
    - apply error_error; [exact I|lia]. }
  rewrite (inner_sym W (error_at i k) (lin _ _)), Z.
  assert (S : inner (s := W) (error_at i k) (error_at i k) <= rho * rho)
    by (apply (of_square _ _ _ _ errors); [exact I|lia]).
  assert (0 <= eta * eta) by apply Rle_0_sqr. unfold square.
  replace (- eta * (- eta * _)) with (eta * eta *
    (inner (s := W) (lin (V := W) (ones (k + k)) (fluctuations i)) (lin (V := W) (ones (k + k)) (fluctuations i))
     + inner (s := W) (error_at i k) (error_at i k))) by ring.
  nra.
Qed.

Lemma without_noise : rho = 0 -> (forall p, In p l -> forall i b, snd p i b = zero) ->
  forall i, (i < n)%nat -> Forall (fun v => same (V := W) v zero) (fluctuations i).
Proof.
  intros Z Q i I. apply Forall_map, Forall_forall. intros j J. apply in_seq in J. unfold fluctuation.
  destruct (Nat.ltb_spec j k).
  - apply (random_part_constant l P _ (slope_at i (S j) (fun _ _ => zero))).
    intros p L w. f_equal. unfold slope_at, visited. destruct (S j <=? k)%nat; [|reflexivity].
    f_equal. generalize (S j). intros a. induction a as [|a IH]; simpl; [reflexivity|].
    rewrite IH. f_equal. f_equal. apply fresh. now apply Q.
  - apply same_outcomes. intros p L w. unfold error_at. now rewrite Q.
Qed.

Lemma changes_independent i j : (i < n)%nat -> (j < n)%nat -> i <> j ->
  inner (s := W) (random_part l (change i)) (random_part l (change j)) = 0.
Proof.
  intros I J N. assert (E := expectation_inner l P (change i) (change j)).
  set (after (a : nat) (past : list V) :=
    minus (local_sgd eta (seen (fun _ b => nth b past zero) a) (S k) x) x).
  assert (S : forall a xi, change a xi = after a (map (xi a) (seq 0 (S k)))).
  { intros a xi. unfold change, after. now rewrite visited_past by lia. }
  assert (D := independent _ _ _ _ errors i j (after i) (after j) I J N).
  rewrite (expectation_ext l _ (fun xi => inner (change i xi) (change j xi))) in D
    by (intros; now rewrite !S).
  assert (T : forall a, expected l (fun xi => after a (map (xi a) (seq 0 (Datatypes.S k)))) =
    expected l (change a)).
  { intros a. apply expected_ext. intros xi. symmetry. apply S. }
  rewrite !T in D. cbn [inner W vectors]. lra.
Qed.

(** The expected square after a client round, over the noise and the draw. *)
Theorem expected_round (draws : law (nat -> bool)) (s m : nat) (lr : R) :
  draws_uniformly draws n m -> (1 <= m <= n)%nat ->
  let after (d : nat -> V) (who : nat -> bool) := square (minus (add x (scale (lr / INR m)
    (total (n + s) (fun i => if who i then d i else zero)))) xs) in
  expectation draws (fun who => expectation l (fun xi => after (fun i => change i xi) who)) =
  expectation draws (after (fun i => expected l (change i)))
  + lr * lr / INR m * average n (fun i => square (V := W) (random_part l (change i))).
Proof.
  intros drawn some after. assert (N : INR n <> 0) by (apply not_0_INR; lia).
  assert (M : INR m <> 0) by (apply not_0_INR; lia).
  set (c := lr / INR m). set (v i := square (V := W) (random_part l (change i))).
  rewrite (expectation_ext draws _ (fun who => after (fun i => expected l (change i)) who
    + c * c * sum n (fun i => v i * indicator (who i)))).
  - rewrite expectation_add, expectation_scale, expectation_sum. f_equal.
    rewrite (sum_ext n _ (fun i => INR m / INR n * v i)).
    2: { intros i I. rewrite expectation_scale, (one _ _ _ drawn i I). ring. }
    rewrite sum_scale. unfold average, c. field. auto.
  - intros [p who] I. cbn [snd].
    set (y := (fun xi => minus (add x (scale c (total (n + s) (fun i =>
      if who i then change i xi else zero)))) xs) : W).
    assert (U : forall (d : nat -> V) (w : V), inner (total (n + s) (fun i => if who i then d i else zero)) w =
      sum n (fun i => indicator (who i) * inner (d i) w)).
    { intros d w. exact (inner_u draws n s m d drawn some (p, who) w I). }
    assert (Y : same (expected l y) (minus (add x (scale c (total (n + s) (fun i =>
      if who i then expected l (change i) else zero)))) xs)).
    { intros w. rewrite inner_expected, inner_minus, inner_add, inner_scale, U.
      rewrite (expectation_ext l _ (fun xi => inner (minus x xs) w * 1
        + c * sum n (fun i => indicator (who i) * inner (change i xi) w))).
      2: { intros q _. unfold y. rewrite inner_minus, inner_add, inner_scale, U, inner_minus. ring. }
      rewrite expectation_add, !expectation_scale, expectation_sum, (proj2 P), inner_minus.
      rewrite (sum_ext n _ (fun i => indicator (who i) * inner (expected l (change i)) w)).
      2: { intros i _. now rewrite expectation_scale, inner_expected. }
      ring. }
    assert (Z : same (V := W) (random_part l y) (scale (s := W) c (total (V := W) n (fun i =>
      scale (s := W) (indicator (who i)) (random_part l (change i)))))).
    { apply same_outcomes. intros q _ w. unfold random_part at 1.
      rewrite inner_minus, (Y w). unfold y.
      assert (T : forall m' (f : nat -> W) o, total (V := W) m' f o = total m' (fun i => f i o)).
      { induction m'; intros; simpl; [reflexivity|]. now rewrite <- IHm'. }
      cbn [scale W vectors]. rewrite inner_scale. fold W. rewrite T, inner_total.
      rewrite !inner_minus, !inner_add, !inner_scale, !U.
      rewrite (sum_ext n (fun i => inner _ w) (fun i => indicator (who i) * inner (change i (snd q)) w
        + -1 * (indicator (who i) * inner (expected l (change i)) w))).
      2: { intros i _. cbn [scale W vectors]. rewrite inner_scale. unfold random_part.
           rewrite inner_minus. ring. }
      rewrite sum_add, sum_scale. ring. }
    transitivity (inner (s := W) y y); [reflexivity|].
    assert (E := expectation_inner l P y y).
    change (inner (s := W) y y = after (fun i => expected l (change i)) who
      + c * c * sum n (fun i => v i * indicator (who i))).
    transitivity (inner (expected l y) (expected l y)
      + inner (s := W) (random_part l y) (random_part l y)); [exact E|].
    rewrite (same_inner _ _ _ _ Y Y), (same_inner (V := W) _ _ _ _ Z Z).
    rewrite inner_scale, inner_scale_r. f_equal. rewrite <- Rmult_assoc. f_equal.
    rewrite inner_total. apply sum_ext. intros i Li. rewrite inner_total_r.
    rewrite (sum_ext n _ (fun j => if Nat.eqb j i then v i * indicator (who i) else 0)).
    + exact (sum_delta n (fun _ => v i * indicator (who i)) i Li).
    + intros j Lj. rewrite inner_scale, inner_scale_r. destruct (Nat.eqb_spec j i) as [->|D].
      * unfold v, square. rewrite <- Rmult_assoc, indicator_twice. ring.
      * rewrite changes_independent by auto. ring.
Qed.

(** *** The client's inequalities, of means and of what is random *)

Definition own (i b : nat) : V := expected l (slope_at i b).

Lemma own_first i : same (own i 0) (G i x).
Proof. exact (expected_constant l P (G i x)). Qed.

Lemma own_last i : same (own i (S k)) (star i).
Proof.
  intros w. unfold own, slope_at. destruct (Nat.leb_spec (S k) k); [lia|].
  exact (expected_constant l P (star i) w).
Qed.

Lemma expected_change i v : (i < n)%nat ->
  inner (expected l (change i)) v = - eta * sum (S k) (fun b => inner (own i b) v).
Proof.
  intros I. rewrite inner_expected.
  rewrite (expectation_ext l _ (fun xi => - eta * sum (S k) (fun b =>
    inner (slope_at i b xi) v + inner (error_at i b xi) v))) by (intros p J; now apply change_at).
  rewrite expectation_scale, expectation_sum. f_equal. apply sum_ext. intros b B.
  rewrite expectation_add, <- !inner_expected, (no_mean i b I ltac:(lia) v), inner_zero. apply Rplus_0_r.
Qed.

Variables (c : claim) (F : nat -> V -> R) (slope : V).
Hypothesis steps : Q2R (client_lr c) = eta.
Hypothesis smooth : 0 < Q2R (smoothness c).
Hypothesis convex : Q2R (convexity c) < Q2R (smoothness c).
Hypothesis interpolated : forall i, (i < n)%nat ->
  interpolable (Q2R (smoothness c)) (Q2R (convexity c)) (F i) (G i).
Hypothesis quiet : noisy c = false ->
  rho = 0 /\ forall p, In p l -> forall i b, snd p i b = zero.
Hypothesis spoken : descent c = false -> forall i, star i = G i xs.

Lemma top_below : (top c (S k) <= S k)%nat.
Proof. unfold top. destruct (descent c); lia. Qed.

Lemma slope_is i a xi : (a <= top c (S k))%nat -> slope_at i a xi = G i (visited xi i a).
Proof.
  unfold top, slope_at, visited. intros A. destruct (Nat.leb_spec a k); [reflexivity|].
  destruct (descent c) eqn:E; [lia|]. now apply spoken.
Qed.

Let place (i a : nat) : W := fun xi => visited xi i a.

Lemma interpolated_on_average i a b : (i < n)%nat ->
  (a <= top c (S k))%nat -> (b <= top c (S k))%nat ->
  let (L, mu) := (Q2R (smoothness c), Q2R (convexity c)) in
  expectation l (fun xi => F i (visited xi i b))
  + inner (slope_at i b) (minus (V := W) (place i a) (place i b))
    + (square (minus (V := W) (slope_at i a) (slope_at i b)) / L
       + mu * square (minus (V := W) (place i a) (place i b))
       - 2 * (mu / L) * inner (minus (V := W) (slope_at i a) (slope_at i b))
           (minus (V := W) (place i a) (place i b))) / (2 * (1 - mu / L))
  <= expectation l (fun xi => F i (visited xi i a)).
Proof.
  intros I A B. set (L := Q2R (smoothness c)). set (mu := Q2R (convexity c)).
  set (D := / (2 * (1 - mu / L))).
  apply Rle_trans with (expectation l (fun xi =>
    F i (visited xi i b) + (inner (slope_at i b xi) (minus (visited xi i a) (visited xi i b))
    + (D * / L * square (minus (slope_at i a xi) (slope_at i b xi))
    + (D * mu * square (minus (visited xi i a) (visited xi i b))
    + (- D * (2 * (mu / L))) * inner (minus (slope_at i a xi) (slope_at i b xi))
           (minus (visited xi i a) (visited xi i b))))))).
  - rewrite !expectation_add, !expectation_scale. right. unfold D, Rdiv, square, place.
    cbn [inner W vectors minus add scale]. unfold minus. cbn [add scale vectors W]. ring.
  - apply expectation_le; [apply P|]. intros xi.
    assert (H := interpolated i I (visited xi i a) (visited xi i b)). fold L mu in H.
    rewrite !slope_is by assumption.
    unfold D, Rdiv in *. lra.
Qed.

Lemma client_value i v pairs bo bx : (i < n)%nat ->
  pairs_fit v (top c (S k)) (S k) pairs = true ->
  form (group c (S k) pairs bo bx) (map (coordinate (minus x xs) slope (own i)) (seq 0 (S k + 3)))
  + form (V := W) (substituted (group c (S k) pairs bo bx) (random_forms (S k))) (fluctuations i)
  <= Q2R bo * square (star i) + Q2R bx * square (minus (G i x) slope) - Q2R v * (F i x - F i xs).
Proof.
  intros I fit.
  assert (H := group_value (V := W) c (S k) (top c (S k)) (fun _ => x) (fun _ => xs) (fun _ => slope) (place i)
    (slope_at i) (error_at i) (fun a => expectation l (fun xi => F i (visited xi i a)))
    ltac:(lia) top_below smooth convex (fun a b => interpolated_on_average i a b I)).
  set (B := group c (S k) pairs bo bx) in *.
  assert (H' : form (V := W) B (coordinates (V := W) (S k) (fun _ => x) (fun _ => xs) (fun _ => slope)
      (slope_at i) (error_at i)) <=
    Q2R bo * square (V := W) (slope_at i (S k))
    + Q2R bx * square (V := W) (minus (slope_at i 0) (fun _ => slope))
    - Q2R v * (F i x - F i xs)).
  { assert (one_value : forall y, expectation l (fun _ => F i y) = F i y).
    { intros y. rewrite (expectation_ext l _ (fun _ => F i y * 1)) by (intros; ring).
      rewrite expectation_scale, (proj2 P). ring. }
    rewrite <- (one_value x), <- (one_value xs).
    replace (expectation l (fun _ => F i xs)) with (expectation l (fun xi => F i (visited xi i (S k))))
      by (apply expectation_ext; intros; unfold visited; destruct (Nat.leb_spec (S k) k); [lia|reflexivity]).
    apply H; [| | |exact fit]; clear H.
    - intros a w A. rewrite steps. cbn [inner W vectors minus add scale].
      assert (R : forall u v : R, u - eta * v = u + - eta * v) by (intros; ring).
      rewrite R. erewrite (sum_ext a) by (intros; symmetry; apply expectation_add).
      rewrite <- expectation_sum, <- expectation_scale, <- expectation_add.
      apply expectation_ext. intros p J. unfold place, visited.
      destruct (Nat.leb_spec a k); [|lia]. rewrite <- R. apply (walk p i a _ J). lia.
    - intros w. cbn [inner W vectors]. unfold place, visited.
      destruct (Nat.leb_spec (S k) k); [lia|reflexivity].
    - intros N b _. apply same_outcomes. intros p J w. unfold error_at.
      now rewrite (proj2 (quiet N) p J). }
  clear H. set (coords := coordinates (V := W) _ _ _ _ _ _) in H'.
  assert (E := form_split l P B coords). change (vectors l P) with W in E. rewrite E in H'. clear E.
  unfold coords in H'. clear coords.
  assert (first : square (V := W) (slope_at i (S k)) = square (star i)).
  { unfold square at 1. cbn [inner W vectors]. unfold slope_at.
    destruct (Nat.leb_spec (S k) k); [lia|].
    rewrite <- (inner_expected l (fun _ => star i)). exact (expected_constant l P (star i) _). }
  assert (start : square (V := W) (minus (slope_at i 0) (fun _ => slope)) = square (minus (G i x) slope)).
  { transitivity (expectation l (fun _ => inner (minus (G i x) slope) (minus (G i x) slope)));
      [reflexivity|].
    rewrite <- (inner_expected l (fun _ => minus (G i x) slope)).
    exact (expected_constant l P (minus (G i x) slope) _). }
  rewrite first, start in H'. apply Rle_trans with (2 := H'). right. f_equal.
  - symmetry. unfold coordinates. rewrite map_app.
    rewrite form_beyond.
    + apply form_same. rewrite map_map. apply Forall2_map. intros j _.
      destruct j as [|[|a]]; [exact (expected_constant l P (minus x xs))|
        exact (expected_constant l P slope)|].
      apply same_refl.
    + rewrite map_map. apply Forall_map, Forall_forall. intros b J. apply in_seq in J.
      apply no_mean; [exact I|lia].
  - rewrite form_substituted. symmetry. apply form_same. unfold coordinates, random_forms.
    replace (S k + 3)%nat with (S (S (S (k + 1)))) by lia. replace (S k - 1)%nat with k by lia.
    cbn [seq map app]. rewrite seq_app, !map_app. cbn [seq map].
    constructor; [|constructor; [|constructor]].
    + apply (random_part_constant l P _ (minus x xs)). intros p _ w. reflexivity.
    + apply (random_part_constant l P _ slope). intros p _ w. reflexivity.
    + apply first_is_certain.
    + rewrite <- app_assoc. apply Forall2_app; [|constructor].
      * rewrite <- (seq_shift k 2), <- (seq_shift k 1), <- (seq_shift k 0), !map_map.
        apply (Forall2_map (V := W)). intros a J w. apply in_seq in J. unfold fluctuations.
        rewrite (lin_unit_seq (V := W)) by lia. unfold fluctuation. destruct (Nat.ltb_spec a k); [|lia].
        reflexivity.
      * replace (3 + k)%nat with (S (S (S k))) by lia. apply last_is_certain.
      * assert (T : seq k k = map (fun a => k + a)%nat (seq 0 k)).
        { clear. replace k with (k + 0)%nat at 1 by lia. generalize k at 2 4 as m. generalize 0%nat.
          intros t m. revert t. induction m as [|m IH]; intros t; simpl; [reflexivity|].
          rewrite <- IH. now rewrite Nat.add_succ_r. }
        rewrite T, !map_map. apply (Forall2_map (V := W)). intros a J w. apply in_seq in J.
        unfold fluctuations. rewrite (lin_unit_seq (V := W)) by lia. unfold fluctuation.
        destruct (Nat.ltb_spec (k + a) k); [lia|]. replace (k + a - k)%nat with a by lia.
        exact (error_random_part i a I ltac:(lia) w).
Qed.

(** *** What noise costs *)

Lemma parts_value i parts from : (i < n)%nat -> (from + length parts <= k)%nat ->
  forallb (fun b => Qle_bool 0 b) parts = true ->
  form (V := W) (qsum (map (fun p => qscale (fst p) (product (unit (k + snd p)) (unit (k + snd p))))
    (List.combine parts (seq from (length parts))))) (fluctuations i)
  <= Q2R (fold_right Qplus 0%Q parts) * (rho * rho).
Proof.
  intros I. revert from. induction parts as [|b parts IH]; intros from B N; simpl in *.
  - unfold form. rewrite bil_nil, Q2R_0. lra.
  - apply andb_prop in N. destruct N as [N N'].
    specialize (IH (S from) ltac:(lia) N'). rewrite form_qadd, form_qscale, form_product, Q2R_plus.
    assert (E : same (V := W) (lin (unit (k + from)) (fluctuations i)) (error_at i from)).
    { intros w. unfold fluctuations. rewrite (lin_unit_seq (V := W)) by lia. unfold fluctuation.
      destruct (Nat.ltb_spec (k + from) k); [lia|]. now replace (k + from - k)%nat with from by lia. }
    rewrite (same_inner (V := W) _ _ _ _ E E).
    assert (S : inner (s := W) (error_at i from) (error_at i from) <= rho * rho)
      by (apply (of_square _ _ _ _ errors); [exact I|lia]).
    assert (0 <= Q2R b) by (rewrite <- Q2R_0; apply Qle_Rle; now apply Qle_bool_iff).
    assert (T := Rmult_le_compat_l _ _ _ H S). unfold qsum in *. rewrite Rmult_plus_distr_r.
    now apply Rplus_le_compat.
Qed.

Lemma orthogonal_value i l' : (i < n)%nat -> orthogonal_fit k l' = true ->
  form (V := W) (qsum (map (fun p => qscale (snd p)
    (both (unit (k + fst (fst p))) (unit (snd (fst p))))) l')) (fluctuations i) = 0.
Proof.
  intros I. induction l' as [|[[b j] v] l' IH]; intros E; [apply bil_nil|].
  cbn [orthogonal_fit forallb] in E. apply andb_prop in E. destruct E as [E E'].
  apply andb_prop in E. destruct E as [B E]. apply Nat.ltb_lt in B.
  assert (U : forall q rest, qsum (q :: rest) = qadd q (qsum rest)) by reflexivity.
  cbn [map]. rewrite U, form_qadd, (IH E'), form_qscale, form_both, Rplus_0_r. cbn [fst snd].
  assert (Z : inner (s := W) (lin (unit (k + b)) (fluctuations i)) (lin (unit j) (fluctuations i)) = 0);
    [|rewrite Z; ring].
  assert (J : (j < b \/ k <= j < k + b)%nat).
  { apply orb_prop in E. destruct E as [E|E]; [left; now apply Nat.ltb_lt|right].
    apply andb_prop in E. destruct E as [E1 E2]. apply Nat.leb_le in E1. apply Nat.ltb_lt in E2. lia. }
  unfold fluctuations. rewrite (lin_unit_seq (V := W)), (inner_sym W), (lin_unit_seq (V := W)) by lia.
  rewrite (inner_sym W). unfold fluctuation. destruct (Nat.ltb_spec (k + b) k); [lia|].
  replace (k + b - k)%nat with b by lia. destruct (Nat.ltb_spec j k).
  - apply error_slope; [exact I|lia].
  - apply error_error; [exact I|lia].
Qed.

Lemma noise_value i eligible parts l' squares : (i < n)%nat -> local_steps c = S k ->
  (length parts <=? k)%nat = true -> forallb (fun b => Qle_bool 0 b) parts = true ->
  orthogonal_fit k l' = true ->
  is_sum_of_squares (noise_block c eligible parts l') squares = true ->
  Q2R (last_noise c) * square (V := W) (lin (V := W) (ones (k + k)) (fluctuations i)) <=
  form (V := W) (substituted eligible (random_forms (S k))) (fluctuations i)
  + Q2R (fold_right Qplus 0%Q parts) * (rho * rho).
Proof.
  intros I K L N O S. assert (H := sum_of_squares (V := W) _ _ (fluctuations i) S).
  unfold noise_block in H. rewrite K in H. replace (Datatypes.S k - 1)%nat with k in H by lia.
  rewrite !form_qadd, form_qscale, form_product, (orthogonal_value i l' I O), Q2R_opp in H.
  apply Nat.leb_le in L. assert (T := parts_value i parts 0 I ltac:(lia) N).
  assert (C : forall (A B : Type) (u : list A) (v w : list B), length u = length v ->
    List.combine u (v ++ w) = List.combine u v).
  { clear. induction u as [|a u IH]; intros [|b v] w E; simpl in *; try discriminate; auto.
    f_equal. apply IH. lia. }
  assert (E : List.combine parts (seq 0 k) = List.combine parts (seq 0 (length parts))).
  { replace k with (length parts + (k - length parts))%nat by lia.
    rewrite seq_app. apply C. now rewrite seq_length. }
  rewrite E in H. unfold square. lra.
Qed.

End Local.
