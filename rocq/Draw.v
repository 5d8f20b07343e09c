(** The expected square after a client round: of the mean of all who may be drawn, and the
    variance of the mean of those who are. *)

From Coq Require Import Reals List Lra Lia Arith.
From fltheory Require Import Space Round.
Open Scope R_scope.

Section Expectation.
Context {A : Type}.
Implicit Types (l : law A) (f g : A -> R).

Lemma expectation_add l f g :
  expectation l (fun who => f who + g who) = expectation l f + expectation l g.
Proof. induction l as [|[p S] l IH]; simpl; [lra|]. rewrite IH. ring. Qed.

Lemma expectation_scale l a f : expectation l (fun who => a * f who) = a * expectation l f.
Proof. induction l as [|[p S] l IH]; simpl; [lra|]. rewrite IH. ring. Qed.

Lemma expectation_ext l f g :
  (forall p, In p l -> f (snd p) = g (snd p)) -> expectation l f = expectation l g.
Proof.
  induction l as [|[p S] l IH]; simpl; intros H; [reflexivity|].
  rewrite IH by (intros; apply H; auto). f_equal. f_equal. exact (H (p, S) (or_introl eq_refl)).
Qed.

Lemma expectation_zero l : expectation l (fun _ => 0) = 0.
Proof. induction l as [|[p S] l IH]; simpl; [lra|]. rewrite IH. ring. Qed.

Lemma expectation_sum l n (f : A -> nat -> R) :
  expectation l (fun who => sum n (f who)) = sum n (fun i => expectation l (fun who => f who i)).
Proof.
  induction n as [|n IH]; simpl; [apply expectation_zero|].
  now rewrite expectation_add, IH.
Qed.

End Expectation.

Lemma expectation_le_met {A} (l : law A) f g :
  (forall p, In p l -> 0 <= fst p) -> (forall p, In p l -> f (snd p) <= g (snd p)) ->
  expectation l f <= expectation l g.
Proof.
  induction l as [|[p o] l IH]; simpl; intros P H; [lra|].
  assert (0 <= p) by exact (P (p, o) (or_introl eq_refl)).
  assert (f o <= g o) by exact (H (p, o) (or_introl eq_refl)).
  assert (IH' := IH (fun q I => P q (or_intror I)) (fun q I => H q (or_intror I))). nra.
Qed.

Lemma expectation_le {A} (l : law A) f g :
  (forall p, In p l -> 0 <= fst p) -> (forall o, f o <= g o) -> expectation l f <= expectation l g.
Proof. intros P H. apply expectation_le_met; [exact P|]. intros p _. apply H. Qed.

Lemma indicator_twice b : indicator b * indicator b = indicator b.
Proof. destruct b; simpl; ring. Qed.

Lemma sum_split n s f : sum (n + s) f = sum n f + sum s (fun i => f (n + i)%nat).
Proof.
  induction s as [|s IH]; [rewrite Nat.add_0_r; simpl; lra|].
  rewrite Nat.add_succ_r. simpl. rewrite IH. ring.
Qed.

(** The expected square after a step with noise. *)
Lemma expected_noise {V : space} (l : law V) (sigma lr : R) (v : V) : unbiased l sigma ->
  expectation l (fun noise => square (add v (scale lr noise))) <=
  square v + lr * lr * (sigma * sigma).
Proof.
  intros U. rewrite (expectation_ext _ _ (fun noise => square v * 1 + (2 * lr * inner noise v
    + lr * lr * square noise))).
  - rewrite !expectation_add, !expectation_scale, (noise_certain _ _ U), (noise_mean _ _ U).
    assert (S := noise_square _ _ U). assert (0 <= lr * lr) by apply Rle_0_sqr. nra.
  - intros p _. unfold square. rewrite !inner_add, !inner_add_r, !inner_scale, !inner_scale_r.
    rewrite (inner_sym V v (snd p)). ring.
Qed.

Section Draw.
Context {V : space}.
Variables (l : law (nat -> bool)) (n s m : nat) (d : nat -> V).
Hypothesis drawn : draws_uniformly l n m.
Hypothesis some : (1 <= m <= n)%nat.

Let u (who : nat -> bool) : V := total (n + s) (fun i => if who i then d i else zero).

Lemma inner_u p w : In p l ->
  inner (u (snd p)) w = sum n (fun i => indicator (snd p i) * inner (d i) w).
Proof.
  intros I. unfold u. rewrite inner_total, sum_split.
  rewrite (sum_ext s _ (fun _ => 0)), sum_const.
  - rewrite Rmult_0_r, Rplus_0_r. apply sum_ext. intros i _.
    destruct (snd p i); simpl; [ring|rewrite inner_zero; ring].
  - intros i _. rewrite (never _ _ _ drawn p (n + i)) by (auto; lia). apply inner_zero.
Qed.

Lemma expected_inner w : expectation l (fun who => inner (u who) w) =
  INR m * inner (mean n d) w.
Proof.
  assert (N : INR n <> 0) by (apply not_0_INR; lia).
  rewrite (expectation_ext _ _ (fun who => sum n (fun i => inner (d i) w * indicator (who i))))
    by (intros p I; rewrite (inner_u p w I); apply sum_ext; intros; ring).
  rewrite expectation_sum, inner_mean. unfold average.
  rewrite <- Rmult_assoc, <- sum_scale. apply sum_ext. intros i L.
  rewrite expectation_scale, (one _ _ _ drawn i L). field. exact N.
Qed.

Let both := INR m * (INR m - 1) / (INR n * (INR n - 1)).

Lemma expected_square_of_sum : expectation l (fun who => square (u who)) =
  both * square (total n d) + (INR m / INR n - both) * sum n (fun i => square (d i)).
Proof.
  rewrite (expectation_ext _ _ (fun who => sum n (fun i => sum n (fun j =>
    inner (d i) (d j) * (indicator (who i) * indicator (who j)))))).
  2: { intros p I. unfold square. rewrite (inner_u p (u (snd p)) I). apply sum_ext. intros i _.
       rewrite (inner_sym V (d i)), (inner_u p (d i) I), <- sum_scale. apply sum_ext.
       intros j _. rewrite (inner_sym V (d j)). ring. }
  rewrite expectation_sum.
  rewrite (sum_ext n _ (fun i => sum n (fun j => both * inner (d i) (d j)
    + (if Nat.eqb j i then (INR m / INR n - both) * inner (d i) (d j) else 0)))).
  2: { intros i Li. rewrite expectation_sum. apply sum_ext. intros j Lj.
       rewrite expectation_scale. destruct (Nat.eqb_spec j i) as [->|N].
       - rewrite (expectation_ext _ _ (fun who => indicator (who i)))
           by (intros; apply indicator_twice).
         rewrite (one _ _ _ drawn i Li). ring.
       - rewrite (two _ _ _ drawn i j Li Lj) by auto. fold both. ring. }
  unfold square. rewrite inner_total.
  rewrite (sum_ext n _ (fun i => both * inner (d i) (total n d)
    + (INR m / INR n - both) * inner (d i) (d i))).
  2: { intros i Li. rewrite sum_add, sum_scale, inner_total_r. f_equal.
       exact (sum_delta n (fun j => (INR m / INR n - both) * inner (d i) (d j)) i Li). }
  rewrite sum_add, !sum_scale. reflexivity.
Qed.

(** [spread] is the variance of the drawn clients' mean; one client has none. *)
Theorem expected_square (x xs : V) (lr spread : R) :
  (n <> 1%nat -> spread = (INR n - INR m) / (INR m * (INR n - 1))) ->
  expectation l (fun who => square (minus (add x (scale (lr / INR m) (u who))) xs)) =
  square (add (minus x xs) (scale lr (mean n d)))
  + lr * lr * spread * average n (fun i => square (apart n d i)).
Proof.
  intros K. assert (N : INR n <> 0) by (apply not_0_INR; lia).
  assert (M : INR m <> 0) by (apply not_0_INR; lia).
  rewrite (expectation_ext _ _ (fun who => square (minus x xs) * 1
    + (2 * (lr / INR m) * inner (u who) (minus x xs)
       + (lr / INR m) * (lr / INR m) * square (u who)))).
  2: { intros p _. unfold square.
       repeat (rewrite ?inner_minus, ?inner_minus_r, ?inner_add, ?inner_add_r, ?inner_scale,
         ?inner_scale_r).
       rewrite (inner_sym V x (u _)), (inner_sym V xs (u _)), (inner_sym V xs x). ring. }
  rewrite !expectation_add, !expectation_scale, (certain _ _ _ drawn), expected_inner,
    expected_square_of_sum.
  assert (T : square (total n d) = INR n * INR n * square (mean n d)).
  { unfold square, mean. rewrite inner_scale, inner_scale_r. field. exact N. }
  assert (A : sum n (fun i => square (d i)) =
    INR n * (square (mean n d) + average n (fun i => square (apart n d i)))).
  { unfold square. rewrite <- average_inner by lia. unfold average. field. exact N. }
  rewrite T, A.
  assert (E : square (add (minus x xs) (scale lr (mean n d))) =
    square (minus x xs) + 2 * lr * inner (mean n d) (minus x xs) + lr * lr * square (mean n d)).
  { unfold square. rewrite !inner_add, !inner_add_r, !inner_scale, !inner_scale_r.
    rewrite (inner_sym V (minus x xs) (mean n d)). ring. }
  rewrite E. set (S := average n (fun i => square (apart n d i))).
  destruct (Nat.eq_dec n 1) as [One|Many].
  - assert (m = 1%nat) as -> by lia. unfold S, average. unfold both.
    subst n. simpl. unfold apart.
    assert (Z : square (minus (d 0%nat) (mean 1 d)) = 0).
    { unfold square, mean. simpl. rewrite inner_minus, !inner_minus_r.
      rewrite !inner_scale, !inner_scale_r, !inner_add, !inner_zero, !inner_add_r, !inner_zero_r.
      field. }
    rewrite Z. generalize (1 * (1 - 1) / (1 * (1 - 1))). intros p. field.
  - rewrite (K Many). unfold both. field. repeat split; auto.
    assert (INR n <> INR 1) by (apply not_INR; lia). simpl in H. lra.
Qed.

End Draw.
