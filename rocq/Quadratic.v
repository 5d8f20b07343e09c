(** The theorems' hypotheses can be met: by quadratic losses, by drawing everybody, in R^d. *)

From Coq Require Import Reals Lra Lia List.
From fltheory Require Import Space Round Draw.
Open Scope R_scope.

(** ** Quadratic losses *)

Section Quadratic.
Context {V : space}.
Variables (L mu : R) (H : V -> V) (b : V).
Hypothesis linear_add : forall u v, same (H (add u v)) (add (H u) (H v)).
Hypothesis linear_scale : forall a v, same (H (scale a v)) (scale a (H v)).
Hypothesis self_adjoint : forall u v, inner (H u) v = inner u (H v).
Hypothesis bounds : forall v, mu * square v <= inner (H v) v <= L * square v.
Hypothesis curved : 0 < L.
Hypothesis less : mu < L.

Let loss (x : V) : R := inner (H x) x / 2 - inner b x.
Let slope (x : V) : V := minus (H x) b.

(** |A v|^2 <= (L - mu) <A v, v> for A = H - mu, which lies between 0 and L - mu. *)
Lemma steep v : square (minus (H v) (scale mu v)) <= (L - mu) * inner (minus (H v) (scale mu v)) v.
Proof.
  set (w := minus (H v) (scale mu v)). set (c := L - mu).
  assert (C : 0 < c) by (unfold c; lra).
  (* The form of A at v - w/c is not negative, and that of c - A at w is not either. *)
  set (u := add v (scale (- / c) w)).
  assert (P := proj1 (bounds u)). assert (Q := proj2 (bounds w)).
  unfold square, u in P, Q.
  rewrite (linear_add v (scale (- / c) w)) in P.
  repeat rewrite ?inner_add, ?inner_add_r, ?inner_scale, ?inner_scale_r in P.
  rewrite !(linear_scale (- / c) w), !inner_scale in P.
  assert (E : inner (H w) v = inner (H v) w) by (rewrite self_adjoint; apply inner_sym).
  rewrite E, (inner_sym V v w) in P.
  assert (W : forall y, inner w y = inner (H v) y - mu * inner v y)
    by (intros y; unfold w; rewrite inner_minus, inner_scale; reflexivity).
  assert (W1 := W v). assert (W2 := W w). rewrite (inner_sym V v w) in W2.
  set (vv := inner v v) in *. set (ww := inner w w) in *. set (wv := inner w v) in *.
  set (hv := inner (H v) v) in *. set (hvw := inner (H v) w) in *. set (hw := inner (H w) w) in *.
  unfold square. fold ww.
  assert (S : hvw = ww + mu * wv) by lra. assert (T : hv = wv + mu * vv) by lra.
  rewrite S, T in P.
  assert (X : 2 * / c * ww <= wv + / c * / c * (hw - mu * ww)) by lra.
  assert (I : 0 < / c) by now apply Rinv_0_lt_compat.
  assert (Y : / c * / c * (hw - mu * ww) <= / c * ww).
  { replace (/ c * ww) with (/ c * / c * (c * ww)) by (field; lra).
    apply Rmult_le_compat_l; [nra|]. unfold c. lra. }
  assert (Z : / c * ww <= wv) by lra.
  apply (Rmult_le_compat_l c) in Z; [|lra].
  replace (c * (/ c * ww)) with ww in Z by (field; lra). exact Z.
Qed.

Theorem quadratic_interpolable : interpolable L mu loss slope.
Proof.
  intros x y. set (v := minus x y). assert (A := steep v). unfold square in A.
  repeat rewrite ?inner_minus, ?inner_minus_r, ?inner_scale, ?inner_scale_r in A.
  rewrite (inner_sym V v (H v)) in A.
  assert (D : forall w, inner (H v) w = inner (H x) w - inner (H y) w).
  { intros w. unfold v, minus. rewrite linear_add, inner_add, linear_scale, inner_scale. ring. }
  assert (S : same (minus (slope x) (slope y)) (H v)).
  { intros w. unfold slope. rewrite !inner_minus, D. ring. }
  unfold square. rewrite (same_inner _ _ _ _ S S), (S v).
  assert (E : loss x - loss y - inner (slope y) v = inner (H v) v / 2).
  { unfold loss, slope. rewrite D, inner_minus. unfold v. rewrite !inner_minus_r.
    assert (inner (H x) y = inner (H y) x) by (rewrite self_adjoint; apply inner_sym). lra. }
  assert (M : 1 - mu / L = (L - mu) / L) by (field; lra).
  rewrite M.
  assert (R : (inner (H v) (H v) / L + mu * inner v v - 2 * (mu / L) * inner (H v) v)
      / (2 * ((L - mu) / L)) =
    (inner (H v) (H v) + mu * L * inner v v - 2 * mu * inner (H v) v) / (2 * (L - mu)))
    by (field; lra).
  rewrite R.
  assert (B : (inner (H v) (H v) + mu * L * inner v v - 2 * mu * inner (H v) v) / (2 * (L - mu))
    <= inner (H v) v / 2).
  { apply (Rmult_le_reg_r (2 * (L - mu))); [lra|].
    unfold Rdiv at 1. rewrite Rmult_assoc, Rinv_l, Rmult_1_r by lra. lra. }
  fold v. lra.
Qed.

End Quadratic.

(** ** Drawing everybody *)

Lemma everybody_is_drawn n : (1 <= n)%nat ->
  draws_uniformly ((1, fun i => Nat.ltb i n) :: nil) n n.
Proof.
  intros P. assert (INR n <> 0) by (apply not_0_INR; lia).
  assert (T : forall i, (i < n)%nat -> indicator (Nat.ltb i n) = 1).
  { intros i I. apply Nat.ltb_lt in I. now rewrite I. }
  constructor; simpl.
  - ring.
  - intros i I. rewrite T by assumption. field. assumption.
  - intros i j I J N. rewrite !T by assumption.
    assert (INR n <> INR 1) by (apply not_INR; lia). simpl in *. field. split; lra.
  - intros p i [<-|[]] I. simpl. now apply Nat.ltb_ge.
Qed.

Lemma everybody_is_there n : there_with ((1, fun _ => true) :: nil) n 1 1.
Proof.
  constructor; simpl; [|intros; ring|intros; ring].
  split; simpl; [|ring]. intros p [<-|[]]. simpl. lra.
Qed.

(** ** Noise of one client's one step: a coin tells its sign *)

Lemma a_coin_is_noise {V : space} (v : V) (rho : R) : square v <= rho * rho ->
  noise_of_clients ((1 / 2, fun _ _ => v) :: (1 / 2, fun _ _ => scale (-1) v) :: nil) 1 1 rho.
Proof.
  intros B. constructor.
  - split; simpl; [|lra]. intros p [<-|[<-|[]]]; simpl; lra.
  - intros i k _ _. simpl. unfold square in *. rewrite inner_scale, inner_scale_r. lra.
  - intros i k past _ K. replace k with 0%nat by lia. simpl. rewrite inner_scale. lra.
  - intros. lia.
Qed.

(** ** One client that comes with probability p *)

Lemma a_coin_is_a_weight (p w : R) :
  random_weights ((p, fun _ _ => w) :: (1 - p, fun _ _ => 0) :: nil) (1 :: nil)%nat
    (p * w :: nil) (p * (w * w) :: nil) ((0 :: nil) :: nil).
Proof.
  assert (only : forall c i, member (1 :: nil)%nat c i -> c = O /\ i = O).
  { unfold member. intros [|[|c]] i I; simpl in I; lia. }
  constructor.
  - simpl. ring.
  - intros c i I. destruct (only c i I) as [-> ->]. simpl. ring.
  - intros c i I. destruct (only c i I) as [-> ->]. simpl. ring.
  - intros c i e j I J N. destruct (only c i I) as [-> ->]. destruct (only e j J) as [-> ->].
    now destruct N.
Qed.

(** ** Vectors of d real numbers *)

Definition real_vectors (d : nat) : space.
Proof.
  refine (Space (nat -> R) (fun _ => 0) (fun u v k => u k + v k) (fun a v k => a * v k)
    (fun u v => sum d (fun k => u k * v k)) _ _ _ _ _).
  - intros u v. apply sum_ext. intros. ring.
  - intros w. rewrite (sum_ext d _ (fun _ => 0)), sum_const by (intros; ring). ring.
  - intros u v w. rewrite <- sum_add. apply sum_ext. intros. ring.
  - intros a v w. rewrite <- sum_scale. apply sum_ext. intros. ring.
  - intros v. replace 0 with (sum d (fun _ => 0)) by (rewrite sum_const; ring).
    apply sum_le. intros. apply Rle_0_sqr.
Defined.
