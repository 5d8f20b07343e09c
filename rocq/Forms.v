(** Linear and quadratic forms with rational coefficients, and certified sums of squares.

A linear form is the list of its coefficients, a quadratic form the list of its rows. Lists that
are too short are continued by zeros. *)

From Coq Require Import Reals QArith Qreals Qabs Qcanon List Lra Lia.
From fltheory Require Import Space.
Import ListNotations.
Open Scope R_scope.

Definition linear := list Q.
Definition quadratic := list linear.

(** Sums and products are reduced at once: denominators would grow without end. *)
Definition plus (a b : Q) : Q := Qred (a + b).
Definition times (a b : Q) : Q := Qred (a * b).

Lemma value_plus a b : Q2R (plus a b) = Q2R a + Q2R b.
Proof. unfold plus. rewrite <- Q2R_plus. apply Qeq_eqR, Qred_correct. Qed.

Lemma value_times a b : Q2R (times a b) = Q2R a * Q2R b.
Proof. unfold times. rewrite <- Q2R_mult. apply Qeq_eqR, Qred_correct. Qed.

Lemma Q2R_0 : Q2R 0 = 0.
Proof. unfold Q2R. simpl. lra. Qed.

Lemma Q2R_1 : Q2R 1 = 1.
Proof. unfold Q2R. simpl. lra. Qed.

Definition zeros (n : nat) : linear := repeat 0%Q n.
Definition unit (n : nat) : linear := zeros n ++ [1%Q].

Fixpoint ladd (l r : linear) : linear :=
  match l, r with
  | [], _ => r
  | _, [] => l
  | a :: l', b :: r' => plus a b :: ladd l' r'
  end.

Definition lscale (a : Q) (l : linear) : linear :=
  if Qeq_bool a 0 then [] else map (times a) l.

Definition lminus (l r : linear) : linear := ladd l (lscale (-1) r).

Fixpoint qadd (A B : quadratic) : quadratic :=
  match A, B with
  | [], _ => B
  | _, [] => A
  | r :: A', s :: B' => ladd r s :: qadd A' B'
  end.

Definition qscale (a : Q) (A : quadratic) : quadratic := map (lscale a) A.

(** The product of two linear forms, and the symmetric one. *)
Definition product (l r : linear) : quadratic := map (fun a => lscale a r) l.

Definition both (l r : linear) : quadratic :=
  qscale (1 # 2) (qadd (product l r) (product r l)).

Definition qsum (l : list quadratic) : quadratic := fold_right qadd [] l.

(** A combination of linear forms. *)
Fixpoint combine (l : linear) (forms : list linear) : linear :=
  match l, forms with
  | a :: l', f :: forms' => ladd (lscale a f) (combine l' forms')
  | _, _ => []
  end.

(** A quadratic form in other coordinates, linear forms of which the former ones are. *)
Fixpoint substituted_rows (A : quadratic) (left forms : list linear) : quadratic :=
  match A, left with
  | row :: A', l :: left' => qadd (product l (combine row forms)) (substituted_rows A' left' forms)
  | _, _ => []
  end.

Definition substituted (A : quadratic) (forms : list linear) : quadratic :=
  substituted_rows A forms forms.

Definition is_zero (l : linear) : bool := forallb (fun a => Qeq_bool a 0) l.

Fixpoint lequal (l r : linear) : bool :=
  match l, r with
  | a :: l', b :: r' => Qeq_bool a b && lequal l' r'
  | [], _ => is_zero r
  | _, [] => is_zero l
  end.

Fixpoint qequal (A B : quadratic) : bool :=
  match A, B with
  | r :: A', s :: B' => lequal r s && qequal A' B'
  | [], _ => forallb is_zero B
  | _, [] => forallb is_zero A
  end.

(** Squares of linear forms, each with a weight. *)
Definition squares := list (Q * linear).

Definition of_squares (l : squares) : quadratic :=
  qsum (map (fun p => product (lscale (fst p) (snd p)) (snd p)) l).

Definition is_sum_of_squares (A : quadratic) (l : squares) : bool :=
  forallb (fun p => Qle_bool 0 (fst p)) l && qequal A (of_squares l).

Section Values.
Context {V : space}.

Fixpoint lin (l : linear) (vs : list V) : V :=
  match l, vs with
  | a :: l', v :: vs' => add (scale (Q2R a) v) (lin l' vs')
  | _, _ => zero
  end.

Fixpoint bil (A : quadratic) (us vs : list V) : R :=
  match A, us with
  | row :: A', u :: us' => inner u (lin row vs) + bil A' us' vs
  | _, _ => 0
  end.

Definition form (A : quadratic) (vs : list V) : R := bil A vs vs.

Lemma lin_nil vs w : inner (lin [] vs) w = 0.
Proof. apply inner_zero. Qed.

Lemma lin_no_vectors l w : inner (lin l []) w = 0.
Proof. destruct l; apply inner_zero. Qed.

Lemma lin_ladd l r vs w : inner (lin (ladd l r) vs) w = inner (lin l vs) w + inner (lin r vs) w.
Proof.
  revert r vs. induction l as [|a l IH]; intros r vs.
  - simpl ladd. rewrite lin_nil. ring.
  - destruct r as [|b r].
    + simpl ladd. rewrite (lin_nil vs). ring.
    + destruct vs as [|v vs]; simpl.
      * rewrite inner_zero. ring.
      * rewrite !inner_add, !inner_scale, IH, value_plus. ring.
Qed.

Lemma Qeq_bool_0 a : Qeq_bool a 0 = true -> Q2R a = 0.
Proof. intros E. apply Qeq_bool_eq in E. rewrite (Qeq_eqR _ _ E). apply Q2R_0. Qed.

Lemma lin_map_times a l vs w : inner (lin (map (times a) l) vs) w = Q2R a * inner (lin l vs) w.
Proof.
  revert vs. induction l as [|b l IH]; intros [|v vs]; simpl; rewrite ?inner_zero; try ring.
  rewrite !inner_add, !inner_scale, IH, value_times. ring.
Qed.

Lemma lin_lscale a l vs w : inner (lin (lscale a l) vs) w = Q2R a * inner (lin l vs) w.
Proof.
  unfold lscale. destruct (Qeq_bool a 0) eqn:E; [|apply lin_map_times].
  rewrite (Qeq_bool_0 _ E), lin_nil. ring.
Qed.

Lemma lin_lminus l r vs w : inner (lin (lminus l r) vs) w = inner (lin l vs) w - inner (lin r vs) w.
Proof.
  unfold lminus. rewrite lin_ladd, lin_lscale. unfold Q2R. simpl. lra.
Qed.

Lemma lin_zeros n l vs : length vs = n ->
  forall us w, inner (lin (zeros n ++ l) (vs ++ us)) w = inner (lin l us) w.
Proof.
  revert vs. induction n as [|n IH]; intros [|v vs] L us w; simpl in *; try discriminate; auto.
  rewrite inner_add, inner_scale, IH by lia. rewrite Q2R_0. ring.
Qed.

Lemma lin_padded l n r vs us w : (length l + n = length vs)%nat ->
  inner (lin (l ++ zeros n ++ r) (vs ++ us)) w = inner (lin l vs) w + inner (lin r us) w.
Proof.
  revert vs. induction l as [|a l IH]; intros vs E.
  - simpl. rewrite lin_zeros, inner_zero by now symmetry. ring.
  - destruct vs as [|v vs]; simpl in *; [discriminate|]. rewrite !inner_add, IH by lia. ring.
Qed.

Lemma lin_beyond l vs us w : (length l <= length vs)%nat ->
  inner (lin l (vs ++ us)) w = inner (lin l vs) w.
Proof.
  revert vs. induction l as [|a l IH]; intros vs E; [now rewrite !lin_nil|].
  destruct vs as [|v vs]; simpl in *; [lia|]. now rewrite !inner_add, IH by lia.
Qed.

Lemma lin_unit n vs w : (n < length vs)%nat -> inner (lin (unit n) vs) w = inner (nth n vs zero) w.
Proof.
  revert vs. induction n as [|n IH]; intros [|v vs] L; simpl in *; try lia;
    rewrite inner_add, inner_scale.
  - rewrite Q2R_1. destruct vs; rewrite inner_zero; ring.
  - unfold unit in IH. rewrite IH by lia. rewrite Q2R_0. ring.
Qed.

Lemma bil_nil us vs : bil [] us vs = 0.
Proof. reflexivity. Qed.

Lemma bil_qadd A B us vs : bil (qadd A B) us vs = bil A us vs + bil B us vs.
Proof.
  revert B us. induction A as [|r A IH]; intros B us.
  - simpl qadd. rewrite bil_nil. ring.
  - destruct B as [|s B].
    + simpl qadd. rewrite (bil_nil us). ring.
    + destruct us as [|u us]; simpl; [ring|].
      rewrite IH, !(inner_sym V u), lin_ladd. ring.
Qed.

Lemma bil_qscale a A us vs : bil (qscale a A) us vs = Q2R a * bil A us vs.
Proof.
  revert us. induction A as [|r A IH]; intros us; simpl; [ring|].
  destruct us as [|u us]; simpl; [ring|].
  rewrite IH, !(inner_sym V u), lin_lscale. ring.
Qed.

Lemma bil_product l r us vs : bil (product l r) us vs = inner (lin l us) (lin r vs).
Proof.
  revert us. induction l as [|a l IH]; intros [|u us]; simpl; rewrite ?inner_zero; try ring.
  fold (product l r). rewrite IH, inner_add, inner_scale, (inner_sym V u), lin_lscale.
  rewrite (inner_sym V u). ring.
Qed.

Lemma form_qadd A B vs : form (qadd A B) vs = form A vs + form B vs.
Proof. apply bil_qadd. Qed.

Lemma form_qscale a A vs : form (qscale a A) vs = Q2R a * form A vs.
Proof. apply bil_qscale. Qed.

Lemma form_product l r vs : form (product l r) vs = inner (lin l vs) (lin r vs).
Proof. apply bil_product. Qed.

Lemma form_both l r vs : form (both l r) vs = inner (lin l vs) (lin r vs).
Proof.
  unfold both. rewrite form_qscale, form_qadd, !form_product, (inner_sym V (lin r vs)).
  unfold Q2R. simpl. lra.
Qed.

Lemma lin_combine l forms vs w :
  inner (lin (combine l forms) vs) w = inner (lin l (map (fun f => lin f vs) forms)) w.
Proof.
  revert forms. induction l as [|a l IH]; intros [|f forms]; simpl; rewrite ?inner_zero; auto;
    try (destruct vs; apply inner_zero).
  rewrite lin_ladd, lin_lscale, inner_add, inner_scale, IH. reflexivity.
Qed.

Lemma form_substituted A forms vs :
  form (substituted A forms) vs = form A (map (fun f => lin f vs) forms).
Proof.
  unfold form, substituted.
  assert (H : forall left, bil (substituted_rows A left forms) vs vs =
    bil A (map (fun f => lin f vs) left) (map (fun f => lin f vs) forms)); [|apply H].
  induction A as [|row A IH]; intros [|l left]; simpl; auto.
  rewrite bil_qadd, bil_product, IH. f_equal.
  rewrite !(inner_sym V (lin l vs)). apply lin_combine.
Qed.

Lemma lin_is_zero l vs w : is_zero l = true -> inner (lin l vs) w = 0.
Proof.
  revert vs. induction l as [|a l IH]; intros vs; simpl; [intros; apply inner_zero|].
  intros E. apply andb_prop in E. destruct E as [E F].
  destruct vs as [|v vs]; simpl; [apply inner_zero|].
  rewrite inner_add, inner_scale, IH, (Qeq_bool_0 _ E) by assumption. ring.
Qed.

Lemma lin_lequal l r vs w : lequal l r = true -> inner (lin l vs) w = inner (lin r vs) w.
Proof.
  revert r vs. induction l as [|a l IH]; intros r vs E.
  - simpl in E. now rewrite lin_nil, (lin_is_zero r).
  - destruct r as [|b r].
    + rewrite (lin_nil vs), (lin_is_zero (a :: l)) by exact E. reflexivity.
    + simpl in E. apply andb_prop in E. destruct E as [E F].
      destruct vs as [|v vs]; simpl; [reflexivity|].
      rewrite !inner_add, !inner_scale, (IH r) by assumption.
      apply Qeq_bool_eq, Qeq_eqR in E. now rewrite E.
Qed.

Lemma bil_are_zero A us vs : forallb is_zero A = true -> bil A us vs = 0.
Proof.
  revert us. induction A as [|r A IH]; intros us E; simpl in *; [reflexivity|].
  apply andb_prop in E. destruct E as [E F]. destruct us as [|u us]; simpl; [reflexivity|].
  rewrite IH, (inner_sym V u), lin_is_zero by assumption. ring.
Qed.

Lemma bil_qequal A B us vs : qequal A B = true -> bil A us vs = bil B us vs.
Proof.
  revert B us. induction A as [|r A IH]; intros B us E.
  - simpl in E. now rewrite (bil_are_zero B).
  - destruct B as [|s B].
    + rewrite (bil_are_zero (r :: A)) by exact E. reflexivity.
    + simpl in E. apply andb_prop in E. destruct E as [E F].
      destruct us as [|u us]; simpl; [reflexivity|].
      rewrite (IH B) by assumption. f_equal. rewrite !(inner_sym V u). now apply lin_lequal.
Qed.

(** What is a certified sum of squares is not negative. *)
Theorem sum_of_squares A l vs : is_sum_of_squares A l = true -> 0 <= form A vs.
Proof.
  unfold is_sum_of_squares, form. intros E. apply andb_prop in E. destruct E as [P E].
  rewrite (bil_qequal _ _ _ _ E). clear E A.
  unfold of_squares. induction l as [|[d f] l IH]; simpl in *; [lra|].
  apply andb_prop in P. destruct P as [P Q]. rewrite bil_qadd, bil_product, lin_lscale.
  apply Rplus_le_le_0_compat; [|auto].
  apply Rmult_le_pos; [|apply inner_square].
  rewrite <- Q2R_0. apply Qle_Rle. now apply Qle_bool_iff.
Qed.

(** ** Coordinates that are told by inner products alone *)

Lemma lin_same l us vs : Forall2 same us vs -> same (lin l us) (lin l vs).
Proof.
  intros F. revert l. induction F as [|u v us vs E F IH]; intros l w.
  - now rewrite !lin_no_vectors.
  - destruct l as [|a l]; simpl; [reflexivity|].
    rewrite !inner_add, !inner_scale, E. now rewrite (IH l w).
Qed.

Lemma form_same A us vs : Forall2 same us vs -> form A us = form A vs.
Proof.
  intros F. unfold form.
  assert (H : forall us' vs' : list V, Forall2 same us' vs' -> bil A us' us = bil A vs' vs);
    [|now apply H].
  induction A as [|r A IH]; intros us' vs' G; simpl; [reflexivity|].
  destruct G as [|u v us' vs' E G]; [reflexivity|].
  rewrite (IH us' vs' G). f_equal. apply same_inner; [exact E|now apply lin_same].
Qed.

Lemma form_beyond A vs us : Forall (fun u => same u zero) us -> form A (vs ++ us) = form A vs.
Proof.
  intros Z.
  assert (T : forall r, same (lin r (vs ++ us)) (lin r vs)).
  { induction vs as [|v vs IH]; intros r w; simpl.
    - rewrite lin_no_vectors. revert r. induction Z as [|u us E Z IH]; intros [|a r]; simpl;
        rewrite ?inner_add, ?inner_scale, ?(E w), ?IH, ?inner_zero; ring.
    - destruct r; [reflexivity|]. simpl. rewrite !inner_add. now rewrite (IH r w). }
  unfold form.
  assert (H : forall ws, bil A (ws ++ us) (vs ++ us) = bil A ws vs); [|apply H].
  induction A as [|r A IH]; intros [|w ws]; simpl; try reflexivity.
  - destruct Z as [|u us' E Z]; [reflexivity|]. rewrite (E _), inner_zero.
    assert (N : forall B, bil B us' (vs ++ u :: us') = 0); [|rewrite N; ring].
    clear - Z. generalize (vs ++ u :: us'). intros ts. induction Z as [|y us' E Z IH]; intros [|t B];
      simpl; rewrite ?(E _), ?inner_zero, ?IH; ring.
  - rewrite IH. f_equal. rewrite !(inner_sym V w). apply T.
Qed.

(** ** Averages over clients *)

(** The coordinates of client i are [c i] at the places [js]. *)
Definition places (c : nat -> V) (js : list nat) : list V := map c js.

Lemma lin_mean n (c : nat -> nat -> V) l js :
  same (lin l (map (fun j => mean n (fun i => c i j)) js)) (mean n (fun i => lin l (map (c i) js))).
Proof.
  revert js. induction l as [|a l IH]; intros js w.
  - simpl. rewrite inner_mean, inner_zero. unfold average.
    rewrite sum_const. ring.
  - destruct js as [|j js]; simpl.
    + rewrite inner_mean, inner_zero. unfold average.
      rewrite sum_const. ring.
    + rewrite inner_add, inner_scale, (IH js w), !inner_mean, <- average_scale, <- average_add.
      apply average_ext. intros i _. now rewrite inner_add, inner_scale.
Qed.

Lemma lin_apart n (c : nat -> nat -> V) l js i :
  same (lin l (map (fun j => apart n (fun i => c i j) i) js))
       (apart n (fun i => lin l (map (c i) js)) i).
Proof.
  intros w. unfold apart at 2. rewrite inner_minus, <- (lin_mean n c l js w).
  revert js. induction l as [|a l IH]; intros js; simpl.
  - rewrite !inner_zero. ring.
  - destruct js as [|j js]; simpl; rewrite ?inner_zero; [ring|].
    rewrite !inner_add, !inner_scale, IH. unfold apart. rewrite inner_minus. ring.
Qed.

(** The form of the means, and of what differs from them. *)
Theorem average_form n (c : nat -> nat -> V) A js : (0 < n)%nat ->
  average n (fun i => form A (map (c i) js)) =
  form A (map (fun j => mean n (fun i => c i j)) js) +
  average n (fun i => form A (map (fun j => apart n (fun i => c i j) i) js)).
Proof.
  intros P. unfold form.
  assert (H : forall ks, average n (fun i => bil A (map (c i) ks) (map (c i) js)) =
    bil A (map (fun j => mean n (fun i => c i j)) ks) (map (fun j => mean n (fun i => c i j)) js) +
    average n (fun i => bil A (map (fun j => apart n (fun i => c i j) i) ks)
                              (map (fun j => apart n (fun i => c i j) i) js))); [|apply H].
  induction A as [|r A IH]; intros ks; simpl.
  - rewrite !average_const by assumption. ring.
  - destruct ks as [|k ks]; simpl.
    + rewrite !average_const by assumption. ring.
    + rewrite !average_add, IH, average_inner by assumption.
      rewrite (inner_sym V (mean _ _) (lin r _)), (lin_mean n c r js).
      rewrite (inner_sym V (mean n (fun i => lin _ _))).
      rewrite (average_ext n
        (fun i => inner (apart n (fun i => c i k) i) (lin r _))
        (fun i => inner (apart n (fun i => c i k) i) (apart n (fun i => lin r (map (c i) js)) i))).
      * ring.
      * intros i _. apply same_inner; [apply same_refl|apply lin_apart].
Qed.

End Values.
