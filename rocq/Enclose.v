(** Formulas in numbers, and rational numbers around their values: what a refutation computes. *)

From Coq Require Import Reals QArith Qreals ZArith Lra Lia List.
From fltheory Require Import Space.
Open Scope R_scope.

(** ** Intervals, their ends multiples of 2^-320 *)

Definition interval := (Q * Q)%type.
Definition inside (x : R) (i : interval) : Prop := Q2R (fst i) <= x <= Q2R (snd i).

Definition grid : positive := (2 ^ 320)%positive.
Definition down (q : Q) : Q := (Qnum q * Zpos grid / Zpos (Qden q))%Z # grid.
Definition up (q : Q) : Q := Qopp (down (Qopp q)).
Definition around (low high : Q) : interval := (down low, up high).
Definition exactly (q : Q) : interval := (q, q).

Lemma down_le q : Q2R (down q) <= Q2R q.
Proof.
  destruct q as [n d]. unfold down, Q2R. cbn [Qnum Qden].
  assert (D : 0 < IZR (Zpos d)) by now apply IZR_lt.
  assert (P : 0 < IZR (Zpos grid)) by now apply IZR_lt.
  generalize dependent grid. intros g P.
  apply (Rmult_le_reg_r (IZR (Zpos d) * IZR (Zpos g))); [now apply Rmult_lt_0_compat|].
  replace (IZR n * / IZR (Zpos d) * (IZR (Zpos d) * IZR (Zpos g))) with (IZR (n * Zpos g))
    by (rewrite mult_IZR; field; lra).
  replace (IZR (n * Zpos g / Zpos d) * / IZR (Zpos g) * (IZR (Zpos d) * IZR (Zpos g)))
    with (IZR (Zpos d * (n * Zpos g / Zpos d))) by (rewrite mult_IZR; field; lra).
  apply IZR_le, Z.mul_div_le. reflexivity.
Qed.

Lemma up_ge q : Q2R q <= Q2R (up q).
Proof. unfold up. rewrite Q2R_opp. assert (H := down_le (Qopp q)). rewrite Q2R_opp in H. lra. Qed.

Lemma inside_around x low high : Q2R low <= x <= Q2R high -> inside x (around low high).
Proof. intros H. assert (A := down_le low). assert (B := up_ge high). unfold inside. simpl. lra. Qed.

Lemma inside_exactly q : inside (Q2R q) (exactly q).
Proof. unfold inside. simpl. lra. Qed.

Definition i_plus (a b : interval) : interval := around (fst a + fst b) (snd a + snd b).
Definition i_opposite (a : interval) : interval := (Qopp (snd a), Qopp (fst a)).
Definition least (a b : Q) : Q := if Qle_bool a b then a else b.
Definition most (a b : Q) : Q := if Qle_bool a b then b else a.
Definition i_times (a b : interval) : interval :=
  let p := (fst a * fst b)%Q in let q := (fst a * snd b)%Q in
  let r := (snd a * fst b)%Q in let s := (snd a * snd b)%Q in
  around (least (least p q) (least r s)) (most (most p q) (most r s)).

Lemma least_le a b : Q2R (least a b) <= Q2R a /\ Q2R (least a b) <= Q2R b.
Proof.
  unfold least. destruct (Qle_bool a b) eqn:E.
  - apply Qle_bool_iff, Qle_Rle in E. lra.
  - assert (~ (a <= b)%Q) by (rewrite <- Qle_bool_iff, E; discriminate).
    apply Qnot_le_lt, Qlt_Rlt in H. lra.
Qed.

Lemma most_ge a b : Q2R a <= Q2R (most a b) /\ Q2R b <= Q2R (most a b).
Proof.
  unfold most. destruct (Qle_bool a b) eqn:E.
  - apply Qle_bool_iff, Qle_Rle in E. lra.
  - assert (~ (a <= b)%Q) by (rewrite <- Qle_bool_iff, E; discriminate).
    apply Qnot_le_lt, Qlt_Rlt in H. lra.
Qed.

Lemma inside_plus x y a b : inside x a -> inside y b -> inside (x + y) (i_plus a b).
Proof. intros A B. apply inside_around. rewrite !Q2R_plus. unfold inside in *. lra. Qed.

Lemma inside_opposite x a : inside x a -> inside (- x) (i_opposite a).
Proof. unfold inside, i_opposite. simpl. rewrite !Q2R_opp. lra. Qed.

(** A product is between those of the ends. *)
Lemma between x y l h l' h' : l <= x <= h -> l' <= y <= h' ->
  forall m, (m <= l * l' /\ m <= l * h' /\ m <= h * l' /\ m <= h * h' -> m <= x * y)
  /\ (l * l' <= m /\ l * h' <= m /\ h * l' <= m /\ h * h' <= m -> x * y <= m).
Proof.
  intros A B m.
  destruct (Rle_dec 0 x), (Rle_dec 0 l'), (Rle_dec 0 h'); split; intros; nra.
Qed.

Lemma inside_times x y a b : inside x a -> inside y b -> inside (x * y) (i_times a b).
Proof.
  intros A B. apply inside_around.
  set (p := (fst a * fst b)%Q). set (q := (fst a * snd b)%Q).
  set (r := (snd a * fst b)%Q). set (s := (snd a * snd b)%Q).
  assert (P : Q2R p = Q2R (fst a) * Q2R (fst b)) by apply Q2R_mult.
  assert (P' : Q2R q = Q2R (fst a) * Q2R (snd b)) by apply Q2R_mult.
  assert (P'' : Q2R r = Q2R (snd a) * Q2R (fst b)) by apply Q2R_mult.
  assert (P''' : Q2R s = Q2R (snd a) * Q2R (snd b)) by apply Q2R_mult.
  assert (H := least_le p q). assert (I := least_le r s).
  assert (J := least_le (least p q) (least r s)).
  assert (H' := most_ge p q). assert (I' := most_ge r s).
  assert (J' := most_ge (most p q) (most r s)).
  split.
  - apply (between x y _ _ _ _ A B). lra.
  - apply (between x y _ _ _ _ A B). lra.
Qed.

Definition above (q : Q) : bool := negb (Qle_bool q 0).

Lemma above_positive q : above q = true -> 0 < Q2R q.
Proof.
  unfold above. destruct (Qle_bool q 0) eqn:E; [discriminate|intros _].
  assert (N : ~ (q <= 0)%Q) by (rewrite <- Qle_bool_iff, E; discriminate).
  apply Qnot_le_lt, Qlt_Rlt in N. now rewrite RMicromega.Q2R_0 in N.
Qed.

Definition i_inverse (a : interval) : option interval :=
  if above (fst a) || above (Qopp (snd a)) then Some (around (/ snd a) (/ fst a)) else None.

Lemma inside_inverse x a i : inside x a -> i_inverse a = Some i -> inside (/ x) i.
Proof.
  unfold i_inverse. intros H E.
  destruct (above (fst a) || above (Qopp (snd a)))%bool eqn:B; [|discriminate].
  injection E as <-. apply inside_around. unfold inside in H.
  assert (N : 0 < Q2R (fst a) \/ Q2R (snd a) < 0).
  { apply Bool.orb_true_iff in B. destruct B as [B|B]; apply above_positive in B; [auto|].
    rewrite Q2R_opp in B. right. lra. }
  assert (Z : forall q, Q2R q <> 0 -> Q2R (/ q) = / Q2R q).
  { intros q A. apply Q2R_inv. intros C. apply A. apply Qeq_eqR in C.
    now rewrite C, RMicromega.Q2R_0. }
  rewrite !Z by lra. destruct N as [N|N].
  - split; apply Rinv_le_contravar; lra.
  - split.
    + replace (/ Q2R (snd a)) with (- / - Q2R (snd a)) by (field; lra).
      replace (/ x) with (- / - x) by (field; lra).
      apply Ropp_le_contravar, Rinv_le_contravar; lra.
    + replace (/ Q2R (fst a)) with (- / - Q2R (fst a)) by (field; lra).
      replace (/ x) with (- / - x) by (field; lra).
      apply Ropp_le_contravar, Rinv_le_contravar; lra.
Qed.

(** A root, of the grid squared. *)
Definition root_below (q : Q) : Q :=
  Z.sqrt (Qnum q * (Zpos grid * Zpos grid) / Zpos (Qden q)) # grid.
Definition root_above (q : Q) : Q :=
  (Z.sqrt (Qnum q * (Zpos grid * Zpos grid) / Zpos (Qden q)) + 1)%Z # grid.
Definition i_root (a : interval) : option interval :=
  if Qle_bool 0 (fst a) then Some (root_below (fst a), root_above (snd a)) else None.

Lemma inside_root x a i : inside x a -> i_root a = Some i -> inside (sqrt x) i.
Proof.
  unfold i_root. intros H E. destruct (Qle_bool 0 (fst a)) eqn:B; [|discriminate].
  injection E as <-. apply Qle_bool_iff, Qle_Rle in B. rewrite RMicromega.Q2R_0 in B.
  destruct a as [[n d] [n' d']]. unfold inside in *. unfold Q2R in *. cbn [fst snd] in *.
  unfold root_below, root_above. cbn [Qnum Qden] in *.
  assert (D : 0 < IZR (Zpos d)) by now apply IZR_lt.
  assert (D' : 0 < IZR (Zpos d')) by now apply IZR_lt.
  assert (P : 0 < IZR (Zpos grid)) by now apply IZR_lt.
  generalize dependent grid. intros g P.
  assert (N : (0 <= n)%Z).
  { apply le_IZR. apply (Rmult_le_reg_r (/ IZR (Zpos d))); [now apply Rinv_0_lt_compat|]. lra. }
  assert (N' : (0 <= n')%Z).
  { apply le_IZR. apply (Rmult_le_reg_r (/ IZR (Zpos d'))); [now apply Rinv_0_lt_compat|]. lra. }
  split.
  - set (t := (n * (Zpos g * Zpos g) / Zpos d)%Z).
    assert (T : (0 <= t)%Z) by (apply Z.div_pos; lia).
    destruct (Z.sqrt_spec t T) as [S _].
    assert (S' : IZR (Z.sqrt t) * IZR (Z.sqrt t) <= IZR t) by (rewrite <- mult_IZR; now apply IZR_le).
    assert (U : (Zpos d * t <= n * (Zpos g * Zpos g))%Z) by (apply Z.mul_div_le; lia).
    apply IZR_le in U. rewrite !mult_IZR in U.
    assert (Q : 0 <= IZR (Z.sqrt t)) by (apply IZR_le, Z.sqrt_nonneg).
    rewrite <- (sqrt_square (IZR (Z.sqrt t) * / IZR (Zpos g))).
    2: { apply Rmult_le_pos; [exact Q|]. left. now apply Rinv_0_lt_compat. }
    apply sqrt_le_1_alt. apply Rle_trans with (IZR n * / IZR (Zpos d)); [|lra].
    apply (Rmult_le_reg_r (IZR (Zpos d) * (IZR (Zpos g) * IZR (Zpos g)))).
    { repeat apply Rmult_lt_0_compat; assumption. }
    replace (IZR (Z.sqrt t) * / IZR (Zpos g) * (IZR (Z.sqrt t) * / IZR (Zpos g)) *
      (IZR (Zpos d) * (IZR (Zpos g) * IZR (Zpos g))))
      with (IZR (Zpos d) * (IZR (Z.sqrt t) * IZR (Z.sqrt t))) by (field; lra).
    replace (IZR n * / IZR (Zpos d) * (IZR (Zpos d) * (IZR (Zpos g) * IZR (Zpos g))))
      with (IZR n * (IZR (Zpos g) * IZR (Zpos g))) by (field; lra).
    apply Rle_trans with (IZR (Zpos d) * IZR t); [|exact U].
    apply Rmult_le_compat_l; [lra|exact S'].
  - set (t := (n' * (Zpos g * Zpos g) / Zpos d')%Z).
    assert (T : (0 <= t)%Z) by (apply Z.div_pos; lia).
    destruct (Z.sqrt_spec t T) as [_ S].
    assert (U : (n' * (Zpos g * Zpos g) < Zpos d' * (t + 1))%Z).
    { assert (M := Z.mod_pos_bound (n' * (Zpos g * Zpos g)) (Zpos d') ltac:(lia)).
      assert (E := Z.div_mod (n' * (Zpos g * Zpos g)) (Zpos d') ltac:(lia)). fold t in E. lia. }
    assert (V : (t + 1 <= (Z.sqrt t + 1) * (Z.sqrt t + 1))%Z) by lia.
    apply IZR_le in V. apply IZR_lt in U. rewrite !mult_IZR in U. rewrite mult_IZR in V.
    assert (Q : 0 <= IZR (Z.sqrt t + 1)) by (apply IZR_le; assert (X := Z.sqrt_nonneg t); lia).
    rewrite <- (sqrt_square (IZR (Z.sqrt t + 1) * / IZR (Zpos g))).
    2: { apply Rmult_le_pos; [exact Q|]. left. now apply Rinv_0_lt_compat. }
    apply sqrt_le_1_alt. apply Rle_trans with (IZR n' * / IZR (Zpos d')); [lra|].
    apply (Rmult_le_reg_r (IZR (Zpos d') * (IZR (Zpos g) * IZR (Zpos g)))).
    { repeat apply Rmult_lt_0_compat; assumption. }
    replace (IZR (Z.sqrt t + 1) * / IZR (Zpos g) * (IZR (Z.sqrt t + 1) * / IZR (Zpos g)) *
      (IZR (Zpos d') * (IZR (Zpos g) * IZR (Zpos g))))
      with (IZR (Zpos d') * (IZR (Z.sqrt t + 1) * IZR (Z.sqrt t + 1))) by (field; lra).
    replace (IZR n' * / IZR (Zpos d') * (IZR (Zpos d') * (IZR (Zpos g) * IZR (Zpos g))))
      with (IZR n' * (IZR (Zpos g) * IZR (Zpos g))) by (field; lra).
    apply Rle_trans with (IZR (Zpos d') * IZR (t + 1)); [lra|].
    apply Rmult_le_compat_l; [lra|exact V].
Qed.

(** ** Formulas *)

Inductive term :=
| Number (q : Q)
| Whole (z : Z)
| Count (n : nat)
| Named (k : nat)
| Plus (a b : term)
| Less (a b : term)
| Opposite (a : term)
| Times (a b : term)
| Over (a b : term)
| Power (a : term) (n : nat)
| Root (a : term).

Section Formulas.
Variables (named : nat -> R) (known : nat -> interval).

Fixpoint value (t : term) : R :=
  match t with
  | Number q => Q2R q
  | Whole z => IZR z
  | Count n => INR n
  | Named k => named k
  | Plus a b => value a + value b
  | Less a b => value a - value b
  | Opposite a => - value a
  | Times a b => value a * value b
  | Over a b => value a / value b
  | Power a n => value a ^ n
  | Root a => sqrt (value a)
  end.

Fixpoint i_power (a : interval) (n : nat) : interval :=
  match n with O => exactly 1 | S k => i_times a (i_power a k) end.

Definition both (f : interval -> interval -> interval) (a b : option interval) :=
  match a, b with Some i, Some j => Some (f i j) | _, _ => None end.

Fixpoint range (t : term) : option interval :=
  match t with
  | Number q => Some (exactly q)
  | Whole z => Some (exactly (inject_Z z))
  | Count n => Some (exactly (inject_Z (Z.of_nat n)))
  | Named k => Some (known k)
  | Plus a b => both i_plus (range a) (range b)
  | Less a b => both (fun i j => i_plus i (i_opposite j)) (range a) (range b)
  | Opposite a => option_map i_opposite (range a)
  | Times a b => both i_times (range a) (range b)
  | Over a b =>
      match range b with
      | Some j => match i_inverse j with
          | Some k => option_map (fun i => i_times i k) (range a)
          | None => None
          end
      | None => None
      end
  | Power a n => option_map (fun i => i_power i n) (range a)
  | Root a => match range a with Some i => i_root i | None => None end
  end.

Hypothesis enclosed : forall k, inside (named k) (known k).

Lemma inside_whole z : inside (IZR z) (exactly (inject_Z z)).
Proof. unfold inside, exactly, Q2R. simpl. lra. Qed.

Theorem range_sound t : forall i, range t = Some i -> inside (value t) i.
Proof.
  induction t; simpl; intros i E.
  - injection E as <-. apply inside_exactly.
  - injection E as <-. apply inside_whole.
  - injection E as <-. rewrite INR_IZR_INZ. apply inside_whole.
  - injection E as <-. apply enclosed.
  - destruct (range t1), (range t2); try discriminate. injection E as <-.
    apply inside_plus; auto.
  - destruct (range t1), (range t2); try discriminate. injection E as <-.
    apply inside_plus; [auto|]. apply inside_opposite; auto.
  - destruct (range t); [|discriminate]. injection E as <-. apply inside_opposite; auto.
  - destruct (range t1), (range t2); try discriminate. injection E as <-.
    apply inside_times; auto.
  - destruct (range t2) as [j|]; [|discriminate]. destruct (i_inverse j) eqn:J; [|discriminate].
    destruct (range t1); [|discriminate]. injection E as <-.
    apply inside_times; [auto|]. apply (inside_inverse _ j); auto.
  - destruct (range t) as [j|]; [|discriminate]. injection E as <-.
    induction n as [|n IH]; simpl; [apply inside_whole|]. apply inside_times; auto.
  - destruct (range t) as [j|]; [|discriminate]. apply (inside_root _ j); auto.
Qed.

(** The value itself, where it is rational and has no names. *)
Definition with_both (f : Q -> Q -> option Q) (a b : option Q) : option Q :=
  match a, b with Some x, Some y => f x y | _, _ => None end.

Fixpoint q_power (x : Q) (n : nat) : Q :=
  match n with O => 1%Q | S k => Qred (x * q_power x k) end.

Definition q_root (x : Q) : option Q :=
  let r := Z.sqrt (Qnum x) # Pos.sqrt (Qden x) in
  if Qle_bool 0 r && Qeq_bool (r * r) x then Some r else None.

Fixpoint exact (t : term) : option Q :=
  match t with
  | Number q => Some q
  | Whole z => Some (inject_Z z)
  | Count n => Some (inject_Z (Z.of_nat n))
  | Named _ => None
  | Plus a b => with_both (fun x y => Some (Qred (x + y))) (exact a) (exact b)
  | Less a b => with_both (fun x y => Some (Qred (x - y))) (exact a) (exact b)
  | Opposite a => option_map Qopp (exact a)
  | Times a b => with_both (fun x y => Some (Qred (x * y))) (exact a) (exact b)
  | Over a b => with_both
      (fun x y => if Qeq_bool y 0 then None else Some (Qred (x / y))) (exact a) (exact b)
  | Power a n => option_map (fun x => q_power x n) (exact a)
  | Root a => match exact a with Some x => q_root x | None => None end
  end.

Lemma Q2R_red x : Q2R (Qred x) = Q2R x.
Proof. apply Qeq_eqR, Qred_correct. Qed.

Lemma Q2R_whole z : Q2R (inject_Z z) = IZR z.
Proof. unfold Q2R. simpl. lra. Qed.

Lemma of_some {A} (a b : A) : Some a = Some b -> b = a.
Proof. congruence. Qed.

Theorem exact_sound t : forall x, exact t = Some x -> value t = Q2R x.
Proof.
  induction t; cbn [exact value]; intros x E.
  - apply of_some in E. now subst x.
  - apply of_some in E. subst x. now rewrite Q2R_whole.
  - apply of_some in E. subst x. now rewrite Q2R_whole, INR_IZR_INZ.
  - discriminate.
  - destruct (exact t1), (exact t2); try discriminate. apply of_some in E. subst x.
    rewrite Q2R_red, Q2R_plus, (IHt1 q), (IHt2 q0); auto.
  - destruct (exact t1), (exact t2); try discriminate. apply of_some in E. subst x.
    rewrite Q2R_red, Q2R_minus, (IHt1 q), (IHt2 q0); auto.
  - destruct (exact t); [|discriminate]. apply of_some in E. subst x.
    rewrite Q2R_opp, (IHt q); auto.
  - destruct (exact t1), (exact t2); try discriminate. apply of_some in E. subst x.
    rewrite Q2R_red, Q2R_mult, (IHt1 q), (IHt2 q0); auto.
  - destruct (exact t1), (exact t2); try discriminate. cbn [with_both] in E.
    destruct (Qeq_bool q0 0) eqn:Z; [discriminate|]. apply of_some in E. subst x.
    rewrite Q2R_red, Q2R_div, (IHt1 q), (IHt2 q0); auto. now apply Qeq_bool_neq.
  - destruct (exact t); [|discriminate]. apply of_some in E. subst x. rewrite (IHt q) by auto.
    induction n as [|n IH]; cbn [pow q_power]; [unfold Q2R; simpl; lra|].
    rewrite Q2R_red, Q2R_mult, IH. reflexivity.
  - destruct (exact t) as [y|]; [|discriminate]. unfold q_root in E.
    rewrite (IHt y) by reflexivity.
    destruct (Qle_bool 0 _ && Qeq_bool _ y)%bool eqn:B; [|discriminate].
    apply of_some in E. subst x. apply Bool.andb_true_iff in B. destruct B as [B C].
    apply Qle_bool_iff, Qle_Rle in B. rewrite RMicromega.Q2R_0 in B.
    apply Qeq_bool_iff, Qeq_eqR in C. rewrite <- C, Q2R_mult. now apply sqrt_square.
Qed.

(** What two formulas without names are, compared as fractions. *)
Definition compared (f : Q -> Q -> bool) (a b : term) : bool :=
  match exact a, exact b with Some x, Some y => f x y | _, _ => false end.

Theorem equal_sound a b : compared Qeq_bool a b = true -> value a = value b.
Proof.
  unfold compared. destruct (exact a) as [x|] eqn:A; [|discriminate].
  destruct (exact b) as [y|] eqn:B; [|discriminate]. intros E.
  rewrite (exact_sound a x A), (exact_sound b y B). now apply Qeq_eqR, Qeq_bool_iff.
Qed.

Theorem not_above_sound a b : compared Qle_bool a b = true -> value a <= value b.
Proof.
  unfold compared. destruct (exact a) as [x|] eqn:A; [|discriminate].
  destruct (exact b) as [y|] eqn:B; [|discriminate]. intros E.
  rewrite (exact_sound a x A), (exact_sound b y B). now apply Qle_Rle, Qle_bool_iff.
Qed.

(** Comparisons that the ends decide. *)
Definition at_most (a b : term) : bool :=
  match range a, range b with Some i, Some j => Qle_bool (snd i) (fst j) | _, _ => false end.
Definition below (a b : term) : bool :=
  match range a, range b with
  | Some i, Some j => negb (Qle_bool (fst j) (snd i))
  | _, _ => false
  end.

Theorem at_most_sound a b : at_most a b = true -> value a <= value b.
Proof.
  unfold at_most. destruct (range a) as [i|] eqn:A; [|discriminate].
  destruct (range b) as [j|] eqn:B; [|discriminate]. intros E.
  apply Qle_bool_iff, Qle_Rle in E. apply range_sound in A, B. unfold inside in *. lra.
Qed.

Theorem below_sound a b : below a b = true -> value a < value b.
Proof.
  unfold below. destruct (range a) as [i|] eqn:A; [|discriminate].
  destruct (range b) as [j|] eqn:B; [|discriminate].
  destruct (Qle_bool (fst j) (snd i)) eqn:E; [discriminate|intros _].
  assert (N : ~ (fst j <= snd i)%Q) by (rewrite <- Qle_bool_iff, E; discriminate).
  apply Qnot_le_lt, Qlt_Rlt in N. apply range_sound in A, B. unfold inside in *. lra.
Qed.

End Formulas.
