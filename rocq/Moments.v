(** The first two moments of a model's coordinates, round by round: what is computed is what is
    expected of the process. *)

From Coq Require Import Reals QArith Qreals List Lra Lia Arith.
From fltheory Require Import Space Round Draw Quadratic Process Enclose.
Import ListNotations.
Open Scope R_scope.

(** ** Expectations *)

Lemma expectation_app {A} (l l' : law A) f :
  expectation (l ++ l') f = expectation l f + expectation l' f.
Proof. induction l as [|p l IH]; simpl; [ring|]. rewrite IH. ring. Qed.

Lemma expectation_scaled {A} (l : law A) a f :
  expectation (map (fun o => (a * fst o, snd o)) l) f = a * expectation l f.
Proof. induction l as [|p l IH]; simpl; [ring|]. rewrite IH. ring. Qed.

Lemma expectation_bind {A B} (l : law A) (next : A -> law B) f :
  expectation (bind l next) f = expectation l (fun a => expectation (next a) f).
Proof.
  unfold bind. induction l as [|p l IH]; simpl; [reflexivity|].
  now rewrite expectation_app, expectation_scaled, IH.
Qed.

Lemma expectation_sure {A} (a : A) f : expectation (sure a) f = f a.
Proof. simpl. ring. Qed.

Lemma expectation_mixture {A} q (l l' : law A) f :
  expectation (mixture q l l') f = q * expectation l f + (1 - q) * expectation l' f.
Proof. unfold mixture. now rewrite expectation_app, !expectation_scaled. Qed.

Lemma expectation_same {A} (l : law A) f g :
  (forall o, f o = g o) -> expectation l f = expectation l g.
Proof. intros H. apply expectation_ext. intros p _. apply H. Qed.

(** A law whose probabilities sum to one. *)
Definition certain_law {A} (l : law A) : Prop := expectation l (fun _ => 1) = 1.

Lemma expectation_const {A} (l : law A) a : certain_law l -> expectation l (fun _ => a) = a.
Proof.
  intros C. rewrite (expectation_same _ _ (fun _ => a * 1)) by (intros; ring).
  rewrite expectation_scale, C. ring.
Qed.

Lemma expectation_affine {A} (l : law A) a b f : certain_law l ->
  expectation l (fun o => a * f o + b) = a * expectation l f + b.
Proof.
  intros C. now rewrite expectation_add, expectation_scale, expectation_const.
Qed.

Lemma expectation_quadratic {A} (l : law A) a b d f : certain_law l ->
  expectation l (fun o => a * (f o * f o) + b * f o + d)
  = a * expectation l (fun o => f o * f o) + b * expectation l f + d.
Proof.
  intros C. rewrite !expectation_add, !expectation_scale, expectation_const; auto.
Qed.

(** ** Independent copies *)

Section Copies.
Context {A : Type}.
Variables (l : law A) (rest : A).
Hypothesis certain : certain_law l.

Lemma expectation_copies k f : expectation (independent_copies (S k) l rest) f =
  expectation (independent_copies k l rest) (fun g =>
    expectation l (fun o => f (fun i => if Nat.eqb i k then o else g i))).
Proof.
  simpl. rewrite expectation_bind. apply expectation_same. intros g.
  rewrite expectation_bind. apply expectation_same. intros o. apply expectation_sure.
Qed.

Lemma copies_certain n : certain_law (independent_copies n l rest).
Proof.
  induction n as [|n IH]; [unfold certain_law; simpl; ring|].
  unfold certain_law. rewrite expectation_copies.
  rewrite (expectation_same _ _ (fun _ => 1)) by (intros; exact certain). exact IH.
Qed.

Variable g : nat -> A -> R.

Lemma updated n (f : nat -> A) o :
  sum n (fun i => g i (if Nat.eqb i n then o else f i)) = sum n (fun i => g i (f i)).
Proof.
  apply sum_ext. intros i I. replace (Nat.eqb i n) with false; [reflexivity|].
  symmetry. apply Nat.eqb_neq. lia.
Qed.

Lemma copies_mean n a : (forall i, (i < n)%nat -> expectation l (g i) = 0) ->
  expectation (independent_copies n l rest) (fun f => a + sum n (fun i => g i (f i))) = a.
Proof.
  induction n as [|n IH]; intros Z; [simpl; ring|].
  rewrite expectation_copies. transitivity (expectation (independent_copies n l rest)
    (fun f => a + sum n (fun i => g i (f i)))); [|apply IH; auto].
  apply expectation_same. intros f. simpl.
  rewrite (expectation_same _ _ (fun o => 1 * g n o + (a + sum n (fun i => g i (f i))))).
  - rewrite expectation_affine, Z by auto. ring.
  - intros o. rewrite updated, Nat.eqb_refl. ring.
Qed.

Lemma copies_square n a : (forall i, (i < n)%nat -> expectation l (g i) = 0) ->
  expectation (independent_copies n l rest)
    (fun f => (a + sum n (fun i => g i (f i))) * (a + sum n (fun i => g i (f i))))
  = a * a + sum n (fun i => expectation l (fun o => g i o * g i o)).
Proof.
  induction n as [|n IH]; intros Z; [simpl; ring|].
  rewrite expectation_copies.
  transitivity (expectation (independent_copies n l rest) (fun f =>
    1 * ((a + sum n (fun i => g i (f i))) * (a + sum n (fun i => g i (f i))))
    + expectation l (fun o => g n o * g n o))).
  - apply expectation_same. intros f. simpl.
    rewrite (expectation_same _ _ (fun o => 1 * (g n o * g n o)
      + (2 * (a + sum n (fun i => g i (f i)))) * g n o
      + (a + sum n (fun i => g i (f i))) * (a + sum n (fun i => g i (f i))))).
    + rewrite expectation_quadratic, Z by auto. ring.
    + intros o. rewrite updated, Nat.eqb_refl. ring.
  - rewrite expectation_affine by apply copies_certain. rewrite IH by auto. simpl. ring.
Qed.

End Copies.

(** ** One axis' noise *)

Lemma expectation_flat {A} (items : list nat) (f : nat -> law A) g :
  expectation (flat_map f items) g = fold_right (fun k rest => expectation (f k) g + rest) 0 items.
Proof. induction items; simpl; [reflexivity|]. now rewrite expectation_app, IHitems. Qed.

Lemma fold_seq n (f : nat -> R) : fold_right (fun k rest => f k + rest) 0 (seq 0 n) = sum n f.
Proof.
  induction n as [|n IH]; [reflexivity|]. rewrite seq_S, fold_right_app. simpl.
  rewrite <- IH. generalize (seq 0 n). intros items.
  induction items; simpl; [ring|]. rewrite IHitems. ring.
Qed.

Section Axis.
Variables (d : nat) (level : R).
Hypothesis some : (0 < d)%nat.

Lemma expectation_axis f : expectation (axis_noise d level) f =
  sum d (fun k => / (2 * INR d) * (f (axis k level) + f (axis k (- level)))).
Proof.
  unfold axis_noise. rewrite expectation_flat, <- fold_seq.
  induction (seq 0 d) as [|k items IH]; [reflexivity|]. cbn [fold_right]. rewrite IH. simpl. ring.
Qed.

Let positive : INR d <> 0.
Proof. apply not_0_INR. lia. Qed.

Lemma axis_certain : certain_law (axis_noise d level).
Proof.
  unfold certain_law. rewrite expectation_axis, sum_const. field. assumption.
Qed.

Lemma axis_mean k : expectation (axis_noise d level) (fun z => z k) = 0.
Proof.
  rewrite expectation_axis, (sum_ext d _ (fun _ => 0)), sum_const; [ring|].
  intros i _. unfold axis. destruct (Nat.eqb k i); ring.
Qed.

Lemma axis_square k : (k < d)%nat ->
  expectation (axis_noise d level) (fun z => z k * z k) = level * level / INR d.
Proof.
  intros K. rewrite expectation_axis.
  rewrite (sum_ext d _ (fun i => if Nat.eqb i k then level * level / INR d else 0)).
  - exact (sum_delta d (fun _ => level * level / INR d) k K).
  - intros i _. unfold axis. rewrite (Nat.eqb_sym k i). destruct (Nat.eqb i k); field; assumption.
Qed.

(** It is noise as one round's theorem has it. *)
Theorem axis_unbiased : unbiased (axis_noise d level) level.
Proof.
  assert (inner_axis : forall (v : real_vectors d) k a, (k < d)%nat ->
    inner (axis k a : real_vectors d) v = a * v k).
  { intros v k a K. simpl. rewrite (sum_ext d _ (fun i => if Nat.eqb i k then a * v k else 0)).
    - exact (sum_delta d (fun _ => a * v k) k K).
    - intros i _. unfold axis. destruct (Nat.eqb_spec i k) as [->|]; ring. }
  constructor.
  - exact axis_certain.
  - intros v. rewrite expectation_axis, (sum_ext d _ (fun _ => 0)), sum_const; [ring|].
    intros k K. rewrite !inner_axis by assumption. ring.
  - rewrite expectation_axis, (sum_ext d _ (fun _ => / INR d * (level * level))), sum_const.
    + right. field. assumption.
    + intros k K. unfold square. rewrite !inner_axis by assumption. unfold axis.
      rewrite Nat.eqb_refl. field. assumption.
Qed.

End Axis.

(** ** Formulas without names, and their sums *)

Definition nameless : nat -> R := fun _ => 0.

Fixpoint t_sum (n : nat) (f : nat -> term) : term :=
  match n with O => Whole 0 | S k => Plus (t_sum k f) (f k) end.
Definition t_mean {A} (items : list A) (f : A -> term) : term :=
  Over (fold_right (fun a rest => Plus (f a) rest) (Whole 0) items) (Count (length items)).

Lemma value_sum e n f : value e (t_sum n f) = sum n (fun i => value e (f i)).
Proof. induction n; simpl; [reflexivity|]. now rewrite IHn. Qed.

(** A set that is drawn, as a list. *)
Definition drawn (m : nat) (pool : list nat) : law (list nat) :=
  map (fun set => (/ INR (length (subsets m pool)), set)) (subsets m pool).

Lemma expectation_uniform m pool f :
  expectation (uniform m pool) f = expectation (drawn m pool) (fun set => f (member set)).
Proof.
  unfold uniform, drawn. generalize (/ INR (length (subsets m pool))). intros n.
  induction (subsets m pool) as [|set sets IH]; simpl; [reflexivity|]. now rewrite IH.
Qed.

Lemma value_mean e m pool f :
  value e (t_mean (subsets m pool) f) = expectation (drawn m pool) (fun set => value e (f set)).
Proof.
  unfold drawn, t_mean. cbn [value]. generalize (INR (length (subsets m pool))). intros n.
  induction (subsets m pool) as [|set sets IH]; simpl; [unfold Rdiv; ring|].
  rewrite <- IH. unfold Rdiv. ring.
Qed.

Lemma drawn_certain m pool : subsets m pool <> [] -> certain_law (drawn m pool).
Proof.
  intros N. unfold certain_law, drawn.
  assert (H : forall sets p, expectation (map (fun set : list nat => (p, set)) sets) (fun _ => 1)
    = INR (length sets) * p).
  { intros sets p. induction sets as [|set sets IH]; [simpl; ring|].
    cbn [map expectation fold_right fst length] in *. unfold expectation in IH. rewrite IH, S_INR.
    ring. }
  rewrite H. apply Rinv_r. apply not_0_INR. now destruct (subsets m pool).
Qed.

(** ** One coordinate of one round *)

Section Setting.
Variable s : setting.
Let K := local_steps s.
Let N := clients s.
Let d := dimension s.
Hypothesis some : (0 < d)%nat.

Notation val := (value nameless).

Definition t_number (rows : list (list Q)) (i k : nat) : term :=
  Number (nth k (nth i rows []) 0%Q).
Definition t_curvature := t_number (hessians s).
Definition t_centre := t_number (optima s).
Definition t_lr := Number (client_lr s).
Definition t_square (t : term) := Times t t.
(** Of a client's offset from its optimum, a step leaves this part. *)
Definition t_kept (i k : nat) : term := Less (Whole 1) (Times t_lr (t_curvature i k)).
Definition t_pull (i k : nat) : term := Less (Power (t_kept i k) K) (Whole 1).
(** The variance of one client's steps, for noise of variance one. *)
Fixpoint t_spread (i k steps : nat) : term :=
  match steps with
  | O => Whole 0
  | S t => Plus (Times (t_square (t_kept i k)) (t_spread i k t)) (t_square t_lr)
  end.
Definition t_noise (level : Q) : term := Over (t_square (Number level)) (Count d).

Definition t_share : term := Over (Number (server_lr s)) (Count (participants s)).
Definition t_among (set : list nat) (f : nat -> term) : term :=
  t_sum N (fun i => if member set i then f i else Whole 0).

(** The next coordinate is [slope x + shift] and noise of a variance. *)
Definition t_slope (set : list nat) k : term :=
  Plus (Whole 1) (Times t_share (t_among set (fun i => t_pull i k))).
Definition t_shift (set : list nat) k : term :=
  Opposite (Times t_share (t_among set (fun i => Times (t_pull i k) (t_centre i k)))).
Definition t_variance (set : list nat) k : term :=
  Times (t_square t_share) (Times (t_noise (sigma s)) (t_among set (fun i => t_spread i k K))).

Definition t_steep k : term := Over (t_sum N (fun i => t_curvature i k)) (Count N).
Definition t_ahead k : term :=
  Opposite (Over (t_sum N (fun i => Times (t_curvature i k) (t_centre i k))) (Count N)).
Definition t_server_slope k : term := Less (Whole 1) (Times (Number (assist_lr s)) (t_steep k)).
Definition t_server_shift k : term := Opposite (Times (Number (assist_lr s)) (t_ahead k)).
Definition t_server_variance : term :=
  Times (t_square (Number (assist_lr s))) (t_noise (server_sigma s)).

Definition sets := subsets (participants s) (eligible s).
Definition t_either (of_clients : list nat -> term) (of_server : term) : term :=
  Plus (Times (Number (coin s)) (t_mean sets of_clients))
    (Times (Less (Whole 1) (Number (coin s))) of_server).

(** The moments' maps: [E y = a E x + b], [E y^2 = a' E x^2 + b' E x + c']. *)
Definition t_a k := t_either (fun set => t_slope set k) (t_server_slope k).
Definition t_b k := t_either (fun set => t_shift set k) (t_server_shift k).
Definition t_a' k := t_either (fun set => t_square (t_slope set k)) (t_square (t_server_slope k)).
Definition t_b' k := Times (Whole 2) (t_either (fun set => Times (t_slope set k) (t_shift set k))
  (Times (t_server_slope k) (t_server_shift k))).
Definition t_c' k := t_either (fun set => Plus (t_square (t_shift set k)) (t_variance set k))
  (Plus (t_square (t_server_shift k)) t_server_variance).

Lemma value_among set f :
  val (t_among set f) = sum N (fun i => if member set i then val (f i) else 0).
Proof.
  unfold t_among. rewrite value_sum. apply sum_ext. intros i _. now destruct (member set i).
Qed.

(** Local steps are affine: this is what noise adds. *)
Fixpoint drift (kept lr : R) (z : nat -> R) (steps : nat) : R :=
  match steps with O => 0 | S t => kept * drift kept lr z t - lr * z t end.

Lemma local_step i k x (xi : nat -> nat -> vectors s) steps :
  (local_sgd (Q2R (client_lr s)) (noisy_gradients (gradient s) xi i) steps x : vectors s) k
  = x k + (val (t_kept i k) ^ steps - 1) * (x k - centre s i k)
    + drift (val (t_kept i k)) (Q2R (client_lr s)) (fun t => xi i t k) steps.
Proof.
  induction steps as [|t IH]; [simpl; ring|].
  set (y := local_sgd (Q2R (client_lr s)) (noisy_gradients (gradient s) xi i) t x) in IH.
  change (y k + -1 * (Q2R (client_lr s) * (curvature s i k * (y k - centre s i k) + xi i t k))
    = x k + (val (t_kept i k) ^ S t - 1) * (x k - centre s i k)
      + drift (val (t_kept i k)) (Q2R (client_lr s)) (fun t => xi i t k) (S t)).
  rewrite IH. cbn [drift pow].
  replace (val (t_kept i k)) with (1 - Q2R (client_lr s) * curvature s i k) by reflexivity. ring.
Qed.

Let l : law (vectors s) := axis_noise d (Q2R (sigma s)).
Let one_client : law (nat -> vectors s) := independent_copies K l (zero : vectors s).

Let l_certain : certain_law l.
Proof. apply axis_certain. exact some. Qed.

Let l_mean k : expectation l (fun o : vectors s => o k) = 0.
Proof. apply axis_mean. Qed.

Let l_square k : (k < d)%nat ->
  expectation l (fun o : vectors s => o k * o k) = val (t_noise (sigma s)).
Proof. intros L. unfold t_noise, t_square. cbn [value]. now apply axis_square. Qed.

Lemma drift_ext kept lr z z' n : (forall t, (t < n)%nat -> z t = z' t) ->
  drift kept lr z n = drift kept lr z' n.
Proof. induction n as [|n IH]; simpl; intros H; [reflexivity|]. rewrite IH, (H n); auto. Qed.

Lemma drift_updated kept lr (f : nat -> vectors s) (o : vectors s) k n :
  drift kept lr (fun t => (if Nat.eqb t n then o else f t) k) n
  = drift kept lr (fun t => f t k) n.
Proof.
  apply drift_ext. intros t T. replace (Nat.eqb t n) with false; [reflexivity|].
  symmetry. apply Nat.eqb_neq. lia.
Qed.

Lemma drift_moments i k n : (k < d)%nat ->
  expectation (independent_copies n l (zero : vectors s))
    (fun f => drift (val (t_kept i k)) (Q2R (client_lr s)) (fun t => f t k) n) = 0
  /\ expectation (independent_copies n l (zero : vectors s))
    (fun f => drift (val (t_kept i k)) (Q2R (client_lr s)) (fun t => f t k) n
      * drift (val (t_kept i k)) (Q2R (client_lr s)) (fun t => f t k) n)
    = val (t_noise (sigma s)) * val (t_spread i k n).
Proof.
  intros L. set (a := val (t_kept i k)). set (lr := Q2R (client_lr s)).
  induction n as [|n [IH IH']]; [simpl; split; ring|].
  assert (C := copies_certain l (zero : vectors s) l_certain n).
  split; rewrite expectation_copies.
  - rewrite (expectation_same _ _
      (fun f : nat -> vectors s => a * drift a lr (fun t => f t k) n + 0)).
    + rewrite expectation_affine, IH by exact C. ring.
    + intros f. rewrite (expectation_same _ _
        (fun o : vectors s => - lr * o k + a * drift a lr (fun t => f t k) n)).
      * rewrite (expectation_affine l _ _ (fun o : vectors s => o k)), l_mean by exact l_certain.
        ring.
      * intros o. cbn [drift]. rewrite drift_updated, Nat.eqb_refl. ring.
  - rewrite (expectation_same _ _ (fun f : nat -> vectors s => a * a * (drift a lr (fun t => f t k) n
      * drift a lr (fun t => f t k) n) + lr * lr * val (t_noise (sigma s)))).
    + rewrite expectation_affine, IH' by exact C. cbn [t_spread value t_square t_lr]. fold a. fold lr.
      unfold t_square, t_lr. cbn [value]. fold a. fold lr. ring.
    + intros f. rewrite (expectation_same _ _
        (fun o : vectors s => lr * lr * (o k * o k)
          + - (2 * lr * a * drift a lr (fun t => f t k) n) * o k
          + a * a * (drift a lr (fun t => f t k) n * drift a lr (fun t => f t k) n))).
      * rewrite (expectation_quadratic l (lr * lr) _ _ (fun o : vectors s => o k)) by exact l_certain.
        rewrite l_mean, l_square by assumption. ring.
      * intros o. cbn [drift]. rewrite drift_updated, Nat.eqb_refl. ring.
Qed.

(** The noise of the sum of exact gradients along a client's steps. *)
Definition noise_of_sum (kept lr : R) (z : nat -> R) (n : nat) : R :=
  - drift kept lr z n / lr - sum n z.
Fixpoint t_product (i k steps : nat) : term :=
  match steps with
  | O => Whole 0
  | S t => Less (Times (t_kept i k) (t_product i k t)) t_lr
  end.
Definition t_sum_spread (i k steps : nat) : term :=
  Plus (Over (t_spread i k steps) (t_square t_lr))
    (Plus (Times (Whole 2) (Over (t_product i k steps) t_lr)) (Count steps)).

Lemma gradients_along i k x (xi : nat -> nat -> vectors s) n : Q2R (client_lr s) <> 0 ->
  sum n (fun t => gradient s i
    (local_sgd (Q2R (client_lr s)) (noisy_gradients (gradient s) xi i) t x) k)
  = - ((val (t_kept i k) ^ n - 1) * (x k - centre s i k)) / Q2R (client_lr s)
    + noise_of_sum (val (t_kept i k)) (Q2R (client_lr s)) (fun t => xi i t k) n.
Proof.
  intros P. unfold noise_of_sum. induction n as [|n IH]; [simpl; field; exact P|].
  cbn [sum]. rewrite IH. unfold gradient at 1. rewrite local_step. cbn [drift pow].
  replace (val (t_kept i k)) with (1 - Q2R (client_lr s) * curvature s i k) by reflexivity.
  field. exact P.
Qed.

Lemma product_moment i k n : (k < d)%nat ->
  expectation (independent_copies n l (zero : vectors s)) (fun f => sum n (fun t => f t k)) = 0
  /\ expectation (independent_copies n l (zero : vectors s))
    (fun f => sum n (fun t => f t k) * sum n (fun t => f t k)) = INR n * val (t_noise (sigma s))
  /\ expectation (independent_copies n l (zero : vectors s))
    (fun f => drift (val (t_kept i k)) (Q2R (client_lr s)) (fun t => f t k) n
      * sum n (fun t => f t k)) = val (t_noise (sigma s)) * val (t_product i k n).
Proof.
  intros L. set (a := val (t_kept i k)). set (lr := Q2R (client_lr s)).
  induction n as [|n [IH [IH' IH'']]]; [simpl; repeat split; ring|].
  assert (C := copies_certain l (zero : vectors s) l_certain n).
  assert (U : forall (f : nat -> vectors s) (o : vectors s),
    sum n (fun t => (if Nat.eqb t n then o else f t) k) = sum n (fun t => f t k)).
  { intros f o. apply sum_ext. intros t T. replace (Nat.eqb t n) with false; [reflexivity|].
    symmetry. apply Nat.eqb_neq. lia. }
  repeat split; rewrite expectation_copies.
  - rewrite (expectation_same _ _ (fun f : nat -> vectors s => 1 * sum n (fun t => f t k) + 0)).
    + rewrite expectation_affine, IH by exact C. ring.
    + intros f. rewrite (expectation_same _ _ (fun o : vectors s => 1 * o k + sum n (fun t => f t k))).
      * rewrite (expectation_affine l _ _ (fun o : vectors s => o k)), l_mean by exact l_certain.
        ring.
      * intros o. cbn [sum]. rewrite U, Nat.eqb_refl. ring.
  - rewrite (expectation_same _ _ (fun f : nat -> vectors s =>
      1 * (sum n (fun t => f t k) * sum n (fun t => f t k)) + val (t_noise (sigma s)))).
    + rewrite expectation_affine, IH', S_INR by exact C. ring.
    + intros f. rewrite (expectation_same _ _ (fun o : vectors s => 1 * (o k * o k)
        + 2 * sum n (fun t => f t k) * o k + sum n (fun t => f t k) * sum n (fun t => f t k))).
      * rewrite (expectation_quadratic l _ _ _ (fun o : vectors s => o k)), l_mean, l_square
          by (exact l_certain || exact L). ring.
      * intros o. cbn [sum]. rewrite U, Nat.eqb_refl. ring.
  - rewrite (expectation_same _ _ (fun f : nat -> vectors s => a * (drift a lr (fun t => f t k) n
      * sum n (fun t => f t k)) + - lr * val (t_noise (sigma s)))).
    + rewrite expectation_affine, IH'' by exact C. cbn [t_product value]. fold a.
      replace (val t_lr) with lr by reflexivity. ring.
    + intros f. rewrite (expectation_same _ _ (fun o : vectors s => - lr * (o k * o k)
        + (a * drift a lr (fun t => f t k) n - lr * sum n (fun t => f t k)) * o k
        + a * drift a lr (fun t => f t k) n * sum n (fun t => f t k))).
      * rewrite (expectation_quadratic l _ _ _ (fun o : vectors s => o k)), l_mean, l_square
          by (exact l_certain || exact L). ring.
      * intros o. cbn [sum drift]. rewrite drift_updated, U, Nat.eqb_refl. ring.
Qed.

Lemma noise_of_sum_moments i k n : (k < d)%nat -> Q2R (client_lr s) <> 0 ->
  expectation (independent_copies n l (zero : vectors s)) (fun f =>
    noise_of_sum (val (t_kept i k)) (Q2R (client_lr s)) (fun t => f t k) n) = 0
  /\ expectation (independent_copies n l (zero : vectors s)) (fun f =>
      noise_of_sum (val (t_kept i k)) (Q2R (client_lr s)) (fun t => f t k) n
      * noise_of_sum (val (t_kept i k)) (Q2R (client_lr s)) (fun t => f t k) n)
    = val (t_noise (sigma s)) * val (t_sum_spread i k n).
Proof.
  intros L P. destruct (drift_moments i k n L) as [D D'].
  destruct (product_moment i k n L) as [X [X' Y]].
  set (a := val (t_kept i k)) in *. set (lr := Q2R (client_lr s)) in *. split.
  - rewrite (expectation_same _ _ (fun f : nat -> vectors s =>
      (- / lr) * drift a lr (fun t => f t k) n + -1 * sum n (fun t => f t k)))
      by (intros; unfold noise_of_sum, Rdiv; ring).
    rewrite expectation_add, !expectation_scale.
    etransitivity; [apply f_equal2; apply f_equal2; [reflexivity|exact D|reflexivity|exact X]|].
    ring.
  - rewrite (expectation_same _ _ (fun f : nat -> vectors s =>
      (/ lr * / lr) * (drift a lr (fun t => f t k) n * drift a lr (fun t => f t k) n)
      + ((2 * / lr) * (drift a lr (fun t => f t k) n * sum n (fun t => f t k))
      + sum n (fun t => f t k) * sum n (fun t => f t k))))
      by (intros; unfold noise_of_sum, Rdiv; ring).
    rewrite !expectation_add, !expectation_scale.
    etransitivity; [apply f_equal2; [apply f_equal2; [reflexivity|exact D']|
      apply f_equal2; [apply f_equal2; [reflexivity|exact Y]|exact X']]|].
    unfold t_sum_spread, t_square. cbn [value]. replace (val t_lr) with lr by reflexivity.
    field. exact P.
Qed.

Lemma coordinate_of_total n (f : nat -> vectors s) k :
  (total n f : vectors s) k = sum n (fun i => f i k).
Proof. induction n as [|n IH]; simpl in *; [reflexivity|]. now rewrite IH. Qed.

Lemma clients_coordinate set (xi : nat -> nat -> vectors s) x k :
  (clients_round N (participants s) K (Q2R (client_lr s)) (Q2R (server_lr s))
    (noisy_gradients (gradient s) xi) (member set) x : vectors s) k
  = val (t_slope set k) * x k + val (t_shift set k)
    + sum N (fun i => if member set i then val t_share
        * drift (val (t_kept i k)) (Q2R (client_lr s)) (fun t => xi i t k) K else 0).
Proof.
  unfold clients_round.
  change ((add x ?v : vectors s) k) with (x k + v k).
  change ((scale ?a ?v : vectors s) k) with (a * v k).
  rewrite coordinate_of_total.
  unfold t_slope, t_shift. cbn [value]. rewrite !value_among.
  replace (Q2R (server_lr s) / INR (participants s)) with (val t_share) by reflexivity.
  generalize (val t_share). intros share.
  rewrite (sum_ext N _ (fun i => (if member set i then val (t_pull i k) else 0) * x k
      + (-1 * (if member set i then val (Times (t_pull i k) (t_centre i k)) else 0)
      + (if member set i then
          drift (val (t_kept i k)) (Q2R (client_lr s)) (fun t => xi i t k) K else 0)))).
  2: { intros i _. destruct (member set i); [|simpl; ring].
       change ((minus ?u x : vectors s) k) with ((u : vectors s) k + -1 * x k).
       rewrite local_step. unfold t_pull. cbn [value].
       replace (val (t_centre i k)) with (centre s i k) by reflexivity. ring. }
  rewrite !sum_add, sum_scale.
  rewrite (sum_ext N (fun i => (if member set i then val (t_pull i k) else 0) * x k)
    (fun i => x k * (if member set i then val (t_pull i k) else 0))), sum_scale by (intros; ring).
  rewrite (sum_ext N (fun i => if member set i then share * _ else 0)
    (fun i => share * (if member set i then
      drift (val (t_kept i k)) (Q2R (client_lr s)) (fun t => xi i t k) K else 0)))
    by (intros i _; destruct (member set i); ring).
  rewrite sum_scale. ring.
Qed.

(** What an affine map with the clients' noise, [g i] of client i's, gives in expectation. *)
Lemma errors_moments (g : nat -> (nat -> vectors s) -> R) (variance : nat -> R) (a : R) :
  (forall i, expectation one_client (g i) = 0) ->
  (forall i, expectation one_client (fun f => g i f * g i f) = variance i) ->
  expectation (errors s) (fun xi => a + sum N (fun i => g i (xi i))) = a
  /\ expectation (errors s) (fun xi =>
      (a + sum N (fun i => g i (xi i))) * (a + sum N (fun i => g i (xi i))))
    = a * a + sum N variance.
Proof.
  intros Z S.
  assert (C : certain_law one_client) by (apply copies_certain; exact l_certain).
  split.
  - exact (copies_mean one_client (fun _ => zero) C g N a (fun i _ => Z i)).
  - etransitivity; [exact (copies_square one_client (fun _ => zero) C g N a (fun i _ => Z i))|].
    f_equal. apply sum_ext. intros i _. apply S.
Qed.

Lemma errors_certain : certain_law (errors s).
Proof. unfold errors. do 2 apply copies_certain. exact l_certain. Qed.

Lemma full_coordinate (x : vectors s) k :
  full_gradient s x k = val (t_steep k) * x k + val (t_ahead k).
Proof.
  unfold full_gradient, mean_gradient, mean.
  change ((scale ?a ?v : vectors s) k) with (a * v k). rewrite coordinate_of_total.
  unfold t_steep, t_ahead. cbn [value]. rewrite !value_sum. fold N.
  rewrite (sum_ext N (fun i => gradient s i x k) (fun i => x k * val (t_curvature i k)
    + -1 * val (Times (t_curvature i k) (t_centre i k)))).
  - rewrite sum_add, !sum_scale. unfold Rdiv. ring.
  - intros i _. unfold gradient. cbn [value].
    replace (val (t_curvature i k)) with (curvature s i k) by reflexivity.
    replace (val (t_centre i k)) with (centre s i k) by reflexivity. ring.
Qed.

Lemma server_coordinate (x noise : vectors s) k :
  (server_round N (Q2R (assist_lr s)) (gradient s) noise x : vectors s) k
  = - Q2R (assist_lr s) * noise k + (val (t_server_slope k) * x k + val (t_server_shift k)).
Proof.
  unfold server_round.
  change (x k + -1 * (Q2R (assist_lr s) * (full_gradient s x k + noise k))
    = - Q2R (assist_lr s) * noise k + (val (t_server_slope k) * x k + val (t_server_shift k))).
  rewrite full_coordinate. unfold t_server_slope, t_server_shift. cbn [value]. ring.
Qed.

Lemma value_either f g : val (t_either f g) =
  Q2R (coin s) * expectation (drawn (participants s) (eligible s)) (fun set => val (f set))
  + (1 - Q2R (coin s)) * val g.
Proof. unfold t_either. cbn [value]. unfold sets. now rewrite value_mean. Qed.

Hypothesis drawable : sets <> [].

Let who_certain : certain_law (drawn (participants s) (eligible s)).
Proof. now apply drawn_certain. Qed.

Let server_certain : certain_law (server_noise s).
Proof. apply axis_certain. exact some. Qed.

Let server_mean k : expectation (server_noise s) (fun o : vectors s => o k) = 0.
Proof. apply axis_mean. Qed.

Let server_square k : (k < d)%nat ->
  expectation (server_noise s) (fun o : vectors s => o k * o k) = val (t_noise (server_sigma s)).
Proof. intros L. unfold t_noise, t_square. cbn [value]. now apply axis_square. Qed.

Lemma expectation_round x f : expectation (one_round s x) f =
  Q2R (coin s) * expectation (drawn (participants s) (eligible s)) (fun set =>
    expectation (errors s) (fun xi => f (clients_round N (participants s) K (Q2R (client_lr s))
      (Q2R (server_lr s)) (noisy_gradients (gradient s) xi) (member set) x)))
  + (1 - Q2R (coin s)) * expectation (server_noise s) (fun noise =>
      f (server_round N (Q2R (assist_lr s)) (gradient s) noise x)).
Proof.
  unfold one_round. rewrite expectation_mixture, !expectation_bind. unfold draws.
  rewrite expectation_uniform. f_equal; f_equal.
  - apply expectation_same. intros set. rewrite expectation_bind. apply expectation_same.
    intros xi. apply expectation_sure.
  - apply expectation_same. intros noise. apply expectation_sure.
Qed.

Lemma round_certain x : certain_law (one_round s x).
Proof.
  unfold certain_law. rewrite expectation_round.
  rewrite (expectation_same _ _ (fun _ => 1)) by (intros; apply errors_certain).
  unfold certain_law in who_certain, server_certain. rewrite who_certain, server_certain. ring.
Qed.

Let among (set : list nat) (i : nat) : R := if member set i then val t_share else 0.

Lemma clients_moments set x k : (k < d)%nat ->
  expectation (errors s) (fun xi => (clients_round N (participants s) K (Q2R (client_lr s))
    (Q2R (server_lr s)) (noisy_gradients (gradient s) xi) (member set) x : vectors s) k)
  = val (t_slope set k) * x k + val (t_shift set k)
  /\ expectation (errors s) (fun xi =>
      (clients_round N (participants s) K (Q2R (client_lr s)) (Q2R (server_lr s))
        (noisy_gradients (gradient s) xi) (member set) x : vectors s) k
      * (clients_round N (participants s) K (Q2R (client_lr s)) (Q2R (server_lr s))
        (noisy_gradients (gradient s) xi) (member set) x : vectors s) k)
    = val (t_square (t_slope set k)) * (x k * x k)
      + 2 * val (Times (t_slope set k) (t_shift set k)) * x k
      + val (Plus (t_square (t_shift set k)) (t_variance set k)).
Proof.
  intros L. set (a := val (t_slope set k) * x k + val (t_shift set k)).
  destruct (errors_moments (fun i f => among set i
      * drift (val (t_kept i k)) (Q2R (client_lr s)) (fun t => f t k) K)
    (fun i => among set i * among set i * (val (t_noise (sigma s)) * val (t_spread i k K))) a)
    as [M S].
  { intros i. rewrite expectation_scale. unfold one_client.
    rewrite (proj1 (drift_moments i k K L)). ring. }
  { intros i. unfold one_client.
    rewrite <- (proj2 (drift_moments i k K L)), <- expectation_scale.
    apply expectation_same. intros f. ring. }
  assert (E : forall xi : nat -> nat -> vectors s,
    (clients_round N (participants s) K (Q2R (client_lr s)) (Q2R (server_lr s))
      (noisy_gradients (gradient s) xi) (member set) x : vectors s) k
    = a + sum N (fun i => among set i
        * drift (val (t_kept i k)) (Q2R (client_lr s)) (fun t => xi i t k) K)).
  { intros xi. rewrite clients_coordinate. unfold a. f_equal. apply sum_ext. intros i _.
    unfold among. destruct (member set i); ring. }
  split.
  - rewrite <- M. apply expectation_same. intros xi. apply E.
  - etransitivity; [apply expectation_same; intros xi; rewrite E; reflexivity|].
    rewrite S. unfold t_variance, t_square. cbn [value]. rewrite value_among.
    rewrite (sum_ext N (fun i => among set i * among set i * _)
      (fun i => val t_share * val t_share * val (t_noise (sigma s))
        * (if member set i then val (t_spread i k K) else 0))).
    + rewrite sum_scale. unfold a. ring.
    + intros i _. unfold among. destruct (member set i); ring.
Qed.

Lemma server_moments x k : (k < d)%nat ->
  expectation (server_noise s) (fun z =>
    (server_round N (Q2R (assist_lr s)) (gradient s) z x : vectors s) k)
  = val (t_server_slope k) * x k + val (t_server_shift k)
  /\ expectation (server_noise s) (fun z =>
      (server_round N (Q2R (assist_lr s)) (gradient s) z x : vectors s) k
      * (server_round N (Q2R (assist_lr s)) (gradient s) z x : vectors s) k)
    = val (t_square (t_server_slope k)) * (x k * x k)
      + 2 * val (Times (t_server_slope k) (t_server_shift k)) * x k
      + val (Plus (t_square (t_server_shift k)) t_server_variance).
Proof.
  intros L. set (a := val (t_server_slope k) * x k + val (t_server_shift k)).
  set (lr := Q2R (assist_lr s)). split.
  - rewrite (expectation_same _ _ (fun z : vectors s => - lr * z k + a))
      by (intros; apply server_coordinate).
    rewrite (expectation_affine _ _ _ (fun o : vectors s => o k)), server_mean
      by exact server_certain. ring.
  - rewrite (expectation_same _ _ (fun z : vectors s =>
      lr * lr * (z k * z k) + - (2 * lr * a) * z k + a * a)).
    + rewrite (expectation_quadratic _ _ _ _ (fun z : vectors s => z k)) by exact server_certain.
      rewrite server_mean, server_square by assumption.
      unfold t_server_variance, t_square. cbn [value]. unfold a, lr. ring.
    + intros z. rewrite server_coordinate. fold lr. fold a. ring.
Qed.

Theorem round_mean x k : (k < d)%nat ->
  expectation (one_round s x) (fun y => y k) = val (t_a k) * x k + val (t_b k).
Proof.
  intros L. rewrite expectation_round, (proj1 (server_moments x k L)).
  rewrite (expectation_same _ _ (fun set => x k * val (t_slope set k) + val (t_shift set k)))
    by (intros set; rewrite (proj1 (clients_moments set x k L)); ring).
  unfold t_a, t_b. rewrite !value_either, expectation_add, expectation_scale. ring.
Qed.

Theorem round_square x k : (k < d)%nat ->
  expectation (one_round s x) (fun y => y k * y k)
  = val (t_a' k) * (x k * x k) + val (t_b' k) * x k + val (t_c' k).
Proof.
  intros L. rewrite expectation_round, (proj2 (server_moments x k L)).
  rewrite (expectation_same _ _ (fun set => x k * x k * val (t_square (t_slope set k))
    + (2 * x k * val (Times (t_slope set k) (t_shift set k))
    + val (Plus (t_square (t_shift set k)) (t_variance set k)))))
    by (intros set; rewrite (proj2 (clients_moments set x k L)); ring).
  unfold t_a', t_b', t_c'. cbn [value]. rewrite !value_either. cbn [value].
  rewrite !expectation_add, !expectation_scale. ring.
Qed.

(** ** All rounds *)

Lemma iterates_certain r : certain_law (iterates s r).
Proof.
  induction r as [|r IH]; [unfold certain_law; simpl; ring|].
  unfold certain_law. simpl. rewrite expectation_bind.
  rewrite (expectation_same _ _ (fun _ => 1)) by (intros; apply round_certain). exact IH.
Qed.

Theorem mean_of_round r k : (k < d)%nat -> after s (S r) (fun x => x k)
  = val (t_a k) * after s r (fun x => x k) + val (t_b k).
Proof.
  intros L. unfold after. cbn [iterates]. rewrite expectation_bind.
  rewrite (expectation_same _ _ (fun x => val (t_a k) * x k + val (t_b k)))
    by (intros; now apply round_mean).
  apply expectation_affine, iterates_certain.
Qed.

Theorem square_of_round r k : (k < d)%nat -> after s (S r) (fun x => x k * x k)
  = val (t_a' k) * after s r (fun x => x k * x k) + val (t_b' k) * after s r (fun x => x k)
    + val (t_c' k).
Proof.
  intros L. unfold after. cbn [iterates]. rewrite expectation_bind.
  rewrite (expectation_same _ _ (fun x => val (t_a' k) * (x k * x k) + val (t_b' k) * x k
    + val (t_c' k))) by (intros; now apply round_square).
  apply (expectation_quadratic _ _ _ _ (fun x : vectors s => x k)), iterates_certain.
Qed.

End Setting.
