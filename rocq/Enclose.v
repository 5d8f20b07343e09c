(** Formulas in numbers, and rational numbers around their values: what a refutation computes. *)

From Coq Require Import Reals QArith Qreals ZArith Lra Lia List.
From fltheory Require Import Space.
Open Scope R_scope.

(** ** Intervals, their ends multiples of 2^-96, given as whole numbers *)

Definition interval := (Z * Z)%type.
Definition digits : positive := 96.
Definition unit : Z := Eval vm_compute in (2 ^ Zpos digits)%Z.
Definition inside (x : R) (i : interval) : Prop :=
  IZR (fst i) <= x * IZR unit <= IZR (snd i).

Lemma unit_positive : 0 < IZR unit.
Proof. apply IZR_lt. reflexivity. Qed.

(** Division by the unit, downwards and upwards. *)
Definition down (n : Z) : Z := Z.shiftr n (Zpos digits).
Definition up (n : Z) : Z := (- down (- n))%Z.

Lemma down_le n : IZR (down n) * IZR unit <= IZR n.
Proof.
  unfold down. rewrite Z.shiftr_div_pow2 by discriminate.
  change (2 ^ Zpos digits)%Z with unit. rewrite <- mult_IZR. apply IZR_le.
  rewrite Z.mul_comm. apply Z.mul_div_le. reflexivity.
Qed.

Lemma up_ge n : IZR n <= IZR (up n) * IZR unit.
Proof. unfold up. rewrite opp_IZR. assert (H := down_le (- n)). rewrite opp_IZR in H. lra. Qed.

Definition i_whole (z : Z) : interval := (z * unit, z * unit)%Z.
Definition i_number (q : Q) : interval :=
  ((Qnum q * unit) / Zpos (Qden q), - ((- (Qnum q * unit)) / Zpos (Qden q)))%Z.

Lemma inside_whole z : inside (IZR z) (i_whole z).
Proof. unfold inside, i_whole. cbn [fst snd]. rewrite mult_IZR. lra. Qed.

Lemma inside_number q : inside (Q2R q) (i_number q).
Proof.
  destruct q as [n d]. unfold inside, i_number, Q2R. cbn [fst snd Qnum Qden].
  assert (D : 0 < IZR (Zpos d)) by now apply IZR_lt.
  assert (A := Z.mul_div_le (n * unit) (Zpos d) eq_refl).
  assert (B := Z.mul_div_le (- (n * unit)) (Zpos d) eq_refl).
  apply IZR_le in A, B. rewrite opp_IZR. rewrite opp_IZR, !mult_IZR in B. rewrite !mult_IZR in A.
  assert (E : IZR n * / IZR (Zpos d) * IZR unit * IZR (Zpos d) = IZR n * IZR unit)
    by (field; lra).
  split; apply (Rmult_le_reg_r (IZR (Zpos d))); lra.
Qed.

Definition i_plus (a b : interval) : interval := (fst a + fst b, snd a + snd b)%Z.
Definition i_opposite (a : interval) : interval := (- snd a, - fst a)%Z.
Definition i_times (a b : interval) : interval :=
  if (0 <=? fst a)%Z && (0 <=? fst b)%Z
  then (down (fst a * fst b), up (snd a * snd b))%Z
  else
    let p := (fst a * fst b)%Z in let q := (fst a * snd b)%Z in
    let r := (snd a * fst b)%Z in let s := (snd a * snd b)%Z in
    (down (Z.min (Z.min p q) (Z.min r s)), up (Z.max (Z.max p q) (Z.max r s))).

Lemma inside_plus x y a b : inside x a -> inside y b -> inside (x + y) (i_plus a b).
Proof. unfold inside, i_plus. cbn [fst snd]. rewrite !plus_IZR. lra. Qed.

Lemma inside_opposite x a : inside x a -> inside (- x) (i_opposite a).
Proof. unfold inside, i_opposite. cbn [fst snd]. rewrite !opp_IZR. lra. Qed.

(** A product is between those of the ends. *)
Lemma between x y l h l' h' : l <= x <= h -> l' <= y <= h' ->
  forall m, (m <= l * l' /\ m <= l * h' /\ m <= h * l' /\ m <= h * h' -> m <= x * y)
  /\ (l * l' <= m /\ l * h' <= m /\ h * l' <= m /\ h * h' <= m -> x * y <= m).
Proof.
  intros A B m.
  destruct (Rle_dec 0 x), (Rle_dec 0 l'), (Rle_dec 0 h'); split; intros; nra.
Qed.

(** What is between whole numbers of the square unit is inside once they are rounded. *)
Lemma rounded x y low high : IZR low <= (x * IZR unit) * (y * IZR unit) <= IZR high ->
  inside (x * y) (down low, up high).
Proof.
  intros H. assert (U := unit_positive). assert (A := down_le low). assert (B := up_ge high).
  unfold inside. cbn [fst snd].
  replace (x * IZR unit * (y * IZR unit)) with (x * y * IZR unit * IZR unit) in H by ring.
  split; apply (Rmult_le_reg_r (IZR unit)); lra.
Qed.

Lemma IZR_min a b : IZR (Z.min a b) <= IZR a /\ IZR (Z.min a b) <= IZR b.
Proof. split; apply IZR_le; lia. Qed.

Lemma IZR_max a b : IZR a <= IZR (Z.max a b) /\ IZR b <= IZR (Z.max a b).
Proof. split; apply IZR_le; lia. Qed.

Lemma inside_times x y a b : inside x a -> inside y b -> inside (x * y) (i_times a b).
Proof.
  unfold i_times. intros A B. unfold inside in A, B.
  destruct ((0 <=? fst a)%Z && (0 <=? fst b)%Z)%bool eqn:P; apply rounded.
  - apply Bool.andb_true_iff in P. destruct P as [P N].
    apply Z.leb_le, IZR_le in P, N. rewrite !mult_IZR.
    split; apply Rmult_le_compat; lra.
  - set (p := (fst a * fst b)%Z). set (q := (fst a * snd b)%Z).
    set (r := (snd a * fst b)%Z). set (s := (snd a * snd b)%Z).
    assert (E1 : IZR p = IZR (fst a) * IZR (fst b)) by apply mult_IZR.
    assert (E2 : IZR q = IZR (fst a) * IZR (snd b)) by apply mult_IZR.
    assert (E3 : IZR r = IZR (snd a) * IZR (fst b)) by apply mult_IZR.
    assert (E4 : IZR s = IZR (snd a) * IZR (snd b)) by apply mult_IZR.
    assert (H := IZR_min p q). assert (I := IZR_min r s).
    assert (J := IZR_min (Z.min p q) (Z.min r s)).
    assert (H' := IZR_max p q). assert (I' := IZR_max r s).
    assert (J' := IZR_max (Z.max p q) (Z.max r s)).
    split; apply (between _ _ _ _ _ _ A B); lra.
Qed.

(** One over what is positive. *)
Definition inverted (a : interval) : interval := (unit * unit / snd a, unit * unit / fst a + 1)%Z.
Definition i_inverse (a : interval) : option interval :=
  if (0 <? fst a)%Z then Some (inverted a)
  else if (snd a <? 0)%Z then Some (i_opposite (inverted (i_opposite a))) else None.

Lemma inside_inverted x a : (0 < fst a)%Z -> inside x a -> inside (/ x) (inverted a).
Proof.
  intros P H. unfold inside in *. unfold inverted. cbn [fst snd].
  assert (U := unit_positive). assert (P' := IZR_lt _ _ P).
  assert (N : 0 < x) by (apply (Rmult_lt_reg_r (IZR unit)); lra).
  assert (T : (0 < snd a)%Z) by (apply lt_IZR; lra).
  assert (A := Z.mul_div_le (unit * unit) (snd a) T).
  assert (B : (unit * unit <= fst a * (unit * unit / fst a + 1))%Z).
  { assert (M := Z.mod_pos_bound (unit * unit) (fst a) P).
    assert (E := Z.div_mod (unit * unit) (fst a)). lia. }
  assert (L : (0 <= unit * unit / snd a)%Z) by (apply Z.div_pos; [discriminate|exact T]).
  assert (K : (0 <= unit * unit / fst a + 1)%Z).
  { assert (G : (0 <= unit * unit / fst a)%Z) by (apply Z.div_pos; [discriminate|exact P]). lia. }
  apply IZR_le in A, B, L, K. rewrite (mult_IZR unit), mult_IZR in A. rewrite mult_IZR, mult_IZR in B.
  set (l := IZR (unit * unit / snd a)) in *. set (h := IZR (unit * unit / fst a + 1)) in *.
  set (u := IZR unit) in *.
  assert (X : 0 < x * u) by now apply Rmult_lt_0_compat.
  split; apply (Rmult_le_reg_r (x * u)); try exact X.
  - replace (/ x * u * (x * u)) with (u * u) by (field; lra).
    apply Rle_trans with (l * IZR (snd a)); [apply Rmult_le_compat_l; lra|lra].
  - replace (/ x * u * (x * u)) with (u * u) by (field; lra).
    apply Rle_trans with (h * IZR (fst a)); [lra|apply Rmult_le_compat_l; lra].
Qed.

Lemma inside_inverse x a i : inside x a -> i_inverse a = Some i -> inside (/ x) i.
Proof.
  unfold i_inverse. intros H E. destruct (0 <? fst a)%Z eqn:P.
  - injection E as <-. apply Z.ltb_lt in P. now apply inside_inverted.
  - destruct (snd a <? 0)%Z eqn:N; [|discriminate]. injection E as <-. apply Z.ltb_lt in N.
    assert (X : x <> 0).
    { intros ->. unfold inside in H. apply IZR_lt in N. lra. }
    replace (/ x) with (- / - x) by (field; exact X).
    apply inside_opposite, inside_inverted; [unfold i_opposite; cbn [fst]; lia|].
    now apply inside_opposite.
Qed.

Definition i_root (a : interval) : option interval :=
  if (0 <=? fst a)%Z then Some (Z.sqrt (fst a * unit), Z.sqrt (snd a * unit) + 1)%Z else None.

Lemma inside_root x a i : inside x a -> i_root a = Some i -> inside (sqrt x) i.
Proof.
  unfold i_root. intros H E. destruct (0 <=? fst a)%Z eqn:P; [|discriminate].
  injection E as <-. apply Z.leb_le in P. unfold inside in *. cbn [fst snd].
  assert (U := unit_positive). assert (P' := IZR_le _ _ P).
  assert (N : 0 <= x) by (apply (Rmult_le_reg_r (IZR unit)); lra).
  assert (T : (0 <= snd a)%Z) by (apply le_IZR; lra).
  assert (V : (0 < unit)%Z) by reflexivity.
  destruct (Z.sqrt_spec (fst a * unit)) as [A _]; [lia|].
  destruct (Z.sqrt_spec (snd a * unit)) as [_ B]; [lia|].
  assert (A' := Z.sqrt_nonneg (fst a * unit)). assert (B' := Z.sqrt_nonneg (snd a * unit)).
  set (l := Z.sqrt (fst a * unit)) in *. set (h := Z.sqrt (snd a * unit)) in *.
  apply IZR_le in A, A', B'. apply IZR_lt in B.
  rewrite !mult_IZR in A, B. rewrite succ_IZR in B. rewrite plus_IZR.
  assert (S : sqrt x * IZR unit * (sqrt x * IZR unit) = x * IZR unit * IZR unit).
  { replace (sqrt x * IZR unit * (sqrt x * IZR unit))
      with (sqrt x * sqrt x * (IZR unit * IZR unit)) by ring. rewrite sqrt_sqrt by exact N. ring. }
  assert (R : 0 <= sqrt x * IZR unit) by (apply Rmult_le_pos; [apply sqrt_pos|lra]).
  assert (W : IZR (fst a) * IZR unit <= x * IZR unit * IZR unit)
    by (apply Rmult_le_compat_r; lra).
  assert (W' : x * IZR unit * IZR unit <= IZR (snd a) * IZR unit)
    by (apply Rmult_le_compat_r; lra).
  split; apply Rsqr_incr_0_var; unfold Rsqr; lra.
Qed.

Fixpoint i_power (a : interval) (n : nat) : interval :=
  match n with O => i_whole 1 | S O => a | S k => i_times a (i_power a k) end.

Lemma inside_power x a n : inside x a -> inside (x ^ n) (i_power a n).
Proof.
  intros H. induction n as [|[|n] IH]; [apply inside_whole|rewrite pow_1; exact H|].
  exact (inside_times _ _ _ _ H IH).
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

Definition both (f : interval -> interval -> interval) (a b : option interval) :=
  match a, b with Some i, Some j => Some (f i j) | _, _ => None end.

Fixpoint range (t : term) : option interval :=
  match t with
  | Number q => Some (i_number q)
  | Whole z => Some (i_whole z)
  | Count n => Some (i_whole (Z.of_nat n))
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

Theorem range_sound t : forall i, range t = Some i -> inside (value t) i.
Proof.
  induction t; simpl; intros i E.
  - injection E as <-. apply inside_number.
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
    apply inside_power; auto.
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
Definition i_at_most (a b : option interval) : bool :=
  match a, b with Some i, Some j => (snd i <=? fst j)%Z | _, _ => false end.
Definition i_below (a b : option interval) : bool :=
  match a, b with Some i, Some j => (snd i <? fst j)%Z | _, _ => false end.

Lemma i_at_most_sound x y i j : inside x i -> inside y j -> (snd i <= fst j)%Z -> x <= y.
Proof.
  unfold inside. intros A B L. apply IZR_le in L. assert (U := unit_positive).
  apply (Rmult_le_reg_r (IZR unit)); lra.
Qed.

Theorem at_most_sound a b : i_at_most (range a) (range b) = true -> value a <= value b.
Proof.
  destruct (range a) as [i|] eqn:A; [|discriminate].
  destruct (range b) as [j|] eqn:B; [|discriminate]. intros E.
  apply (i_at_most_sound _ _ i j); auto using range_sound. now apply Z.leb_le.
Qed.

Theorem below_sound a b : i_below (range a) (range b) = true -> value a < value b.
Proof.
  destruct (range a) as [i|] eqn:A; [|discriminate].
  destruct (range b) as [j|] eqn:B; [|discriminate]. intros E.
  apply Z.ltb_lt, IZR_lt in E. apply range_sound in A, B. unfold inside in *.
  assert (U := unit_positive). apply (Rmult_lt_reg_r (IZR unit)); lra.
Qed.

End Formulas.

(** ** The range of a formula for many values of its names: what has none is worked out once *)

Inductive staged :=
| Still (i : option interval)
| Moving (f : (nat -> interval) -> option interval).

Definition unstaged (known : nat -> interval) (a : staged) : option interval :=
  match a with Still i => i | Moving f => f known end.
Definition on_one (g : option interval -> option interval) (a : staged) : staged :=
  match a with Still i => Still (g i) | Moving f => Moving (fun known => g (f known)) end.
Definition on_two (g : option interval -> option interval -> option interval) (a b : staged) :=
  match a, b with
  | Still i, Still j => Still (g i j)
  | _, _ => Moving (fun known => g (unstaged known a) (unstaged known b))
  end.
Definition quotient (a b : option interval) : option interval :=
  match b with
  | Some j => match i_inverse j with
      | Some k => option_map (fun i => i_times i k) a
      | None => None
      end
  | None => None
  end.

Fixpoint prepared (t : term) : staged :=
  match t with
  | Number q => Still (Some (i_number q))
  | Whole z => Still (Some (i_whole z))
  | Count n => Still (Some (i_whole (Z.of_nat n)))
  | Named k => Moving (fun known => Some (known k))
  | Plus a b => on_two (both i_plus) (prepared a) (prepared b)
  | Less a b => on_two (both (fun i j => i_plus i (i_opposite j))) (prepared a) (prepared b)
  | Opposite a => on_one (option_map i_opposite) (prepared a)
  | Times a b => on_two (both i_times) (prepared a) (prepared b)
  | Over a b => on_two quotient (prepared a) (prepared b)
  | Power a n => on_one (option_map (fun i => i_power i n)) (prepared a)
  | Root a => on_one (fun a => match a with Some i => i_root i | None => None end) (prepared a)
  end.

Theorem prepared_range known t : unstaged known (prepared t) = range known t.
Proof.
  assert (One : forall g a, unstaged known (on_one g a) = g (unstaged known a))
    by (intros g []; reflexivity).
  assert (Two : forall g a b,
    unstaged known (on_two g a b) = g (unstaged known a) (unstaged known b))
    by (intros g [] []; reflexivity).
  induction t; cbn [prepared range]; rewrite ?One, ?Two, ?IHt, ?IHt1, ?IHt2; reflexivity.
Qed.
