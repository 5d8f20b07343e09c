(** A checker of refutations, and that what it accepts is so: every hypothesis holds, and what is
    expected is above the bound. *)

From Coq Require Import Reals QArith Qreals ZArith List Lra Lia Arith.
From fltheory Require Import Space Round Draw Quadratic Process Enclose Moments Refutation.
Import ListNotations.
Open Scope R_scope.

(** ** Moments of all rounds, in intervals *)

Definition unknown : nat -> interval := fun _ => i_whole 0.
Definition enclosed (t : term) : option interval := range unknown t.

Lemma enclosed_sound t i : enclosed t = Some i -> inside (value nameless t) i.
Proof. apply range_sound. intros k. apply inside_whole. Qed.

(** The maps of a coordinate's mean and mean square. *)
Record maps := { to_mean : interval * interval; to_square : interval * interval * interval }.

Definition maps_of (s : setting) (k : nat) : option maps :=
  match enclosed (t_a s k), enclosed (t_b s k), enclosed (t_a' s k), enclosed (t_b' s k),
    enclosed (t_c' s k) with
  | Some a, Some b, Some a', Some b', Some c' =>
      Some {| to_mean := (a, b); to_square := (a', b', c') |}
  | _, _, _, _, _ => None
  end.

Definition moment := (interval * interval)%type.
Definition moved (p : maps * moment) : moment :=
  let '(a, b) := to_mean (fst p) in let '(a', b', c') := to_square (fst p) in
  let '(mean, square) := snd p in
  (i_plus (i_times a mean) b, i_plus (i_plus (i_times a' square) (i_times b' mean)) c').

Fixpoint trace (all : list maps) (n : nat) (row : list moment) : list (list moment) :=
  row :: match n with O => [] | S k => trace all k (map moved (combine all row)) end.

Fixpoint collected {A} (l : list (option A)) : option (list A) :=
  match l with
  | [] => Some []
  | Some a :: rest => option_map (cons a) (collected rest)
  | None :: _ => None
  end.

Definition first_row (s : setting) : list moment :=
  map (fun k => let x := nth k (start s) 0%Q in (i_number x, i_number (x * x))) (seq 0 (dimension s)).

Definition coefficients (s : setting) (xs : list Q) (o : quantity) (k : nat)
    : option (interval * interval * interval) :=
  match enclosed (on_square s o k), enclosed (on_value s xs o k), enclosed (on_nothing s xs o k)
  with Some a, Some b, Some c => Some (a, b, c) | _, _, _ => None end.

Definition in_row (factors : list (interval * interval * interval)) (row : list moment) : interval :=
  fold_right (fun p rest =>
    let '(a, b, c) := fst p in let '(mean, square) := snd p in
    i_plus (i_plus (i_plus (i_times a square) (i_times b mean)) c) rest)
    (i_whole 0) (combine factors row).

(** A quantity before every round and after the last. *)
Definition series (s : setting) (xs : list Q) (rows : list (list moment)) (o : quantity)
    : option (list interval) :=
  option_map (fun factors => map (in_row factors) rows)
    (collected (map (coefficients s xs o) (seq 0 (dimension s)))).

Fixpoint i_sum (n : nat) (f : nat -> interval) : interval :=
  match n with O => i_whole 0 | S k => i_plus (i_sum k f) (f k) end.
Definition i_max (a b : interval) : interval := (Z.max (fst a) (fst b), Z.max (snd a) (snd b)).
Fixpoint i_largest (n : nat) (f : nat -> interval) : interval :=
  match n with O => f O | S k => i_max (i_largest k f) (f n) end.

Definition of_series (l : list interval) (a : along) : nat -> interval :=
  let at_round r := nth r l (i_whole 0) in
  match reduced a with
  | Every => fun r => at_round (first a + r)%nat
  | Mean =>
      let mean := i_times (i_number (1 # Pos.of_succ_nat (more a)))
        (i_sum (S (more a)) (fun k => at_round (first a + k)%nat)) in
      fun _ => mean
  | Largest => let largest := i_largest (more a) (fun k => at_round (first a + k)%nat) in
      fun _ => largest
  end.

Section Sound.
Variables (s : setting) (xs : list Q).
Let d := dimension s.
Hypothesis some : (0 < d)%nat.
Hypothesis drawable : sets s <> [].
Hypothesis moving : Q2R (client_lr s) <> 0.
Notation val := (value nameless).

Definition mean_of r k := after s r (fun x => x k).
Definition square_of r k := after s r (fun x => x k * x k).
Definition tracks (r k : nat) (m : moment) : Prop :=
  inside (mean_of r k) (fst m) /\ inside (square_of r k) (snd m).
Definition map_of (k : nat) (m : maps) : Prop := maps_of s k = Some m.

Lemma moved_tracks r k m x : (k < d)%nat -> map_of k m -> tracks r k x ->
  tracks (S r) k (moved (m, x)).
Proof.
  unfold map_of, maps_of. intros L.
  destruct (enclosed (t_a s k)) as [a|] eqn:A; [|discriminate].
  destruct (enclosed (t_b s k)) as [b|] eqn:B; [|discriminate].
  destruct (enclosed (t_a' s k)) as [a'|] eqn:A'; [|discriminate].
  destruct (enclosed (t_b' s k)) as [b'|] eqn:B'; [|discriminate].
  destruct (enclosed (t_c' s k)) as [c'|] eqn:C'; [|discriminate].
  intros E [M S]. apply of_some in E. subst m. destruct x as [mean square].
  cbn [fst snd] in M, S. apply enclosed_sound in A, B, A', B', C'. unfold tracks, mean_of, square_of.
  cbn [moved to_mean to_square fst snd]. rewrite mean_of_round, square_of_round by assumption.
  split; repeat (apply inside_plus || apply inside_times); assumption.
Qed.

Lemma row_tracks r ks all row : (forall k, In k ks -> (k < d)%nat) -> Forall2 map_of ks all ->
  Forall2 (tracks r) ks row -> Forall2 (tracks (S r)) ks (map moved (combine all row)).
Proof.
  intros L A. revert row. induction A as [|k m ks all E A IH]; intros row T.
  - inversion T. constructor.
  - inversion T as [|? x ? rest X Y]; subst. simpl. constructor.
    + apply moved_tracks; [apply L; now left|exact E|exact X].
    + apply IH; [|exact Y]. intros j J. apply L. now right.
Qed.

Lemma trace_tracks all n : Forall2 map_of (seq 0 d) all -> forall r row,
  Forall2 (tracks r) (seq 0 d) row ->
  forall k, (k <= n)%nat -> exists later,
    nth_error (trace all n row) k = Some later /\ Forall2 (tracks (r + k)) (seq 0 d) later.
Proof.
  intros A. induction n as [|n IH]; intros r row T k L.
  - replace k with 0%nat by lia. exists row. rewrite Nat.add_0_r. now split.
  - destruct k as [|k].
    + exists row. rewrite Nat.add_0_r. now split.
    + simpl. replace (r + S k)%nat with (S r + k)%nat by lia. apply IH; [|lia].
      apply row_tracks; [|exact A|exact T]. intros j J. apply in_seq in J. lia.
Qed.

Lemma collected_sound {A} (f : nat -> option A) ks l : collected (map f ks) = Some l ->
  Forall2 (fun k a => f k = Some a) ks l.
Proof.
  revert l. induction ks as [|k ks IH]; simpl; intros l E.
  - apply of_some in E. subst l. constructor.
  - destruct (f k) as [a|] eqn:F; [|discriminate].
    destruct (collected (map f ks)) as [rest|]; [|discriminate]. simpl in E.
    apply of_some in E. subst l. constructor; auto.
Qed.

Lemma first_row_tracks : Forall2 (tracks 0) (seq 0 d) (first_row s).
Proof.
  unfold first_row. fold d. induction (seq 0 d) as [|k ks IH]; [constructor|].
  simpl. constructor; [|exact IH]. unfold tracks, mean_of, square_of, after. simpl.
  unfold point. split.
  - rewrite Rmult_1_l, Rplus_0_r. apply inside_number.
  - rewrite Rmult_1_l, Rplus_0_r, <- Q2R_mult. apply inside_number.
Qed.

Lemma in_row_sound r o ks factors row :
  Forall2 (fun k a => coefficients s xs o k = Some a) ks factors -> Forall2 (tracks r) ks row ->
  inside (fold_right (fun k rest => val (on_square s o k) * square_of r k
    + val (on_value s xs o k) * mean_of r k + val (on_nothing s xs o k) + rest) 0 ks)
    (in_row factors row).
Proof.
  intros F. revert row. induction F as [|k a ks factors E F IH]; intros row T.
  - inversion T. apply inside_whole.
  - inversion T as [|? x ? rest [X X'] Y]; subst. unfold in_row. simpl.
    unfold coefficients in E.
    destruct (enclosed (on_square s o k)) as [i|] eqn:A; [|discriminate].
    destruct (enclosed (on_value s xs o k)) as [j|] eqn:B; [|discriminate].
    destruct (enclosed (on_nothing s xs o k)) as [l|] eqn:C; [|discriminate].
    apply of_some in E. subst a. destruct x as [mean square]. cbn [fst snd] in X, X'.
    apply enclosed_sound in A, B, C.
    repeat (apply inside_plus || apply inside_times); try assumption. apply IH, Y.
Qed.

(** All rounds of a trace, and a series of it. *)
Definition tracked (n : nat) (rows : list (list moment)) : Prop := forall r, (r <= n)%nat ->
  exists row, nth_error rows r = Some row /\ Forall2 (tracks r) (seq 0 d) row.

Lemma trace_tracked n all : collected (map (maps_of s) (seq 0 d)) = Some all ->
  tracked n (trace all n (first_row s)).
Proof.
  intros C r L. apply (trace_tracks all n (collected_sound _ _ _ C) 0 _ first_row_tracks r L).
Qed.

Lemma series_sound n rows o l : tracked n rows -> series s xs rows o = Some l ->
  forall r, (r <= n)%nat -> inside (after s r (measure s xs o)) (nth r l (i_whole 0)).
Proof.
  unfold series. fold d. intros T E r L.
  destruct (collected (map (coefficients s xs o) (seq 0 d))) as [factors|] eqn:C; [|discriminate].
  apply of_some in E. subst l. destruct (T r L) as [row [N F]].
  rewrite (nth_error_nth (map (in_row factors) rows) r (x := in_row factors row))
    by now apply map_nth_error.
  rewrite expected_by_coordinates by assumption. fold d. rewrite <- fold_seq.
  exact (in_row_sound r o _ _ _ (collected_sound _ _ _ C) F).
Qed.

Lemma i_sum_sound n f g : (forall k, (k < n)%nat -> inside (f k) (g k)) ->
  inside (sum n f) (i_sum n g).
Proof.
  induction n as [|n IH]; simpl; intros H; [apply inside_whole|].
  apply inside_plus; auto.
Qed.

Lemma i_largest_sound n f g : (forall k, (k <= n)%nat -> inside (f k) (g k)) ->
  inside (largest n f) (i_largest n g).
Proof.
  induction n as [|n IH]; intros H; [apply H; lia|].
  cbn [largest i_largest]. assert (A := IH (fun k L => H k (le_S _ _ L))). assert (B := H (S n) (le_n _)).
  unfold inside, i_max in *. cbn [fst snd].
  assert (C := IZR_max (snd (i_largest n g)) (snd (g (S n)))). assert (U := unit_positive).
  assert (X := Rmult_le_compat_r _ _ _ (Rlt_le _ _ U) (Rmax_l (largest n f) (f (S n)))).
  assert (Y := Rmult_le_compat_r _ _ _ (Rlt_le _ _ U) (Rmax_r (largest n f) (f (S n)))).
  split.
  - destruct (Z.max_spec (fst (i_largest n g)) (fst (g (S n)))) as [[_ ->]|[_ ->]]; lra.
  - unfold Rmax. destruct (Rle_dec _ _); lra.
Qed.

(** The last round that a symbol takes part in, for conditions of rounds below a count. *)
Definition last_of (count : nat) (a : along) : nat :=
  (first a + match reduced a with Every => pred count | _ => more a end)%nat.

Lemma symbol_sound n rows a l count r : tracked n rows -> series s xs rows (of a) = Some l ->
  (last_of count a <= n)%nat -> (r < count)%nat ->
  inside (in_round s xs a r) (of_series l a r).
Proof.
  intros T E L R. unfold last_of in L. unfold in_round, of_series.
  assert (H := series_sound n rows (of a) l T E).
  destruct (reduced a).
  - apply H. lia.
  - unfold average. apply inside_times.
    + replace (/ INR (S (more a))) with (Q2R (1 # Pos.of_succ_nat (more a))).
      * apply inside_number.
      * unfold Q2R. cbn [Qnum Qden]. rewrite INR_IZR_INZ, Zpos_P_of_succ_nat, Nat2Z.inj_succ. ring.
    + apply i_sum_sound. intros k K. apply H. lia.
  - apply i_largest_sound. intros k K. apply H. lia.
Qed.

End Sound.

(** ** The checker *)

(** What decides a condition, once its names' intervals are known. *)
Definition meets (c : condition) : (nat -> interval) -> bool :=
  match c with
  | AtMost a b =>
      if compared Qle_bool a b then fun _ => true
      else let a := prepared a in let b := prepared b in
        fun known => i_at_most (unstaged known a) (unstaged known b)
  | Below a b =>
      let a := prepared a in let b := prepared b in
      fun known => i_below (unstaged known a) (unstaged known b)
  | Equal a b => let same := compared Qeq_bool a b in fun _ => same
  end.

Definition read_from (all : list (nat -> interval)) (r k : nat) : interval :=
  match nth_error all k with Some f => f r | None => i_whole 0 end.

Definition possible (s : setting) : bool :=
  Nat.ltb 0 (dimension s) && negb (Nat.eqb (length (sets s)) 0)
  && negb (Qeq_bool (client_lr s) 0).

Definition checked (c : refutation) : bool :=
  possible (case c) && forallb (fun a => Nat.leb (last_of (rounds c) a) (run c)) (symbols c)
  && Nat.leb (last_of 1 (truth c)) (run c)
  && match collected (map (maps_of (case c)) (seq 0 (dimension (case c)))) with
     | None => false
     | Some all =>
         let rows := trace all (run c) (first_row (case c)) in
         let read a := option_map (fun l => of_series l a)
           (series (case c) (optimum c) rows (of a)) in
         match collected (map read (symbols c)), read (truth c) with
         | Some known, Some expected =>
             let tests := map meets (conditions c) in
             forallb (fun r => let names := read_from known r in
               forallb (fun test => test names) tests) (seq 0 (rounds c))
             && i_at_most (enclosed (bound c)) (enclosed (bound_below c))
             && i_at_most (enclosed (truth_above c)) (Some (expected 0%nat))
         | _, _ => false
         end
     end.

(** The values of a condition's names in a round. *)
Definition names (c : refutation) (r k : nat) : R :=
  match nth_error (symbols c) k with
  | Some a => in_round (case c) (optimum c) a r
  | None => 0
  end.

Lemma meets_sound named known l : (forall k, inside (named k) (known k)) ->
  meets l known = true -> holds named l.
Proof.
  intros I. destruct l as [a b|a b|a b]; cbn [meets holds]; intros E.
  - destruct (compared Qle_bool a b) eqn:C; [now apply not_above_sound|].
    rewrite !prepared_range in E. now apply (at_most_sound _ _ I).
  - rewrite !prepared_range in E. now apply (below_sound _ _ I).
  - now apply equal_sound.
Qed.

Lemma possible_sound s : possible s = true ->
  (0 < dimension s)%nat /\ sets s <> [] /\ Q2R (client_lr s) <> 0.
Proof.
  unfold possible. rewrite !Bool.andb_true_iff, !Bool.negb_true_iff.
  intros [[A B] C]. split; [now apply Nat.ltb_lt|]. split.
  - intros E. rewrite E in B. simpl in B. discriminate.
  - intros E. apply Qeq_bool_neq in C. apply C. apply eqR_Qeq. now rewrite RMicromega.Q2R_0.
Qed.

Lemma read_sound {A} (f : along -> option A) l known k : collected (map f l) = Some known ->
  match nth_error l k with
  | Some a => exists x, f a = Some x /\ nth_error known k = Some x
  | None => nth_error known k = None
  end.
Proof.
  revert known k. induction l as [|a l IH]; intros known k E.
  - apply of_some in E. subst known. now destruct k.
  - simpl in E. destruct (f a) as [x|] eqn:F; [|discriminate].
    destruct (collected (map f l)) as [rest|]; [|discriminate].
    apply of_some in E. subst known. destruct k as [|k]; [now exists x|]. exact (IH rest k eq_refl).
Qed.

Theorem refuted (c : refutation) : checked c = true ->
  (forall r, (r < rounds c)%nat -> forall l, In l (conditions c) -> holds (names c r) l)
  /\ value nameless (bound c) <= value nameless (bound_below c)
  /\ value nameless (truth_above c) <= in_round (case c) (optimum c) (truth c) 0.
Proof.
  unfold checked. intros E. apply Bool.andb_true_iff in E. destruct E as [E M].
  rewrite !Bool.andb_true_iff in E. destruct E as [[P S] T].
  apply possible_sound in P. destruct P as [some [drawable moving]].
  destruct (collected (map (maps_of (case c)) _)) as [all|] eqn:A; [|discriminate].
  cbv zeta in M. assert (R := trace_tracked (case c) some drawable (run c) all A).
  set (rows := trace all (run c) (first_row (case c))) in *.
  set (read := fun a => option_map (fun l => of_series l a)
    (series (case c) (optimum c) rows (of a))) in *.
  destruct (collected (map read (symbols c))) as [known|] eqn:B; [|discriminate].
  fold (read (truth c)) in M.
  destruct (read (truth c)) as [expected|] eqn:Q; [|discriminate].
  rewrite !Bool.andb_true_iff in M. destruct M as [[M N] O].
  rewrite forallb_forall in M, S. split; [|split].
  - intros r L l I. assert (J := M r (proj2 (in_seq _ _ _) (conj (Nat.le_0_l r) L))).
    cbv beta zeta in J. rewrite forallb_forall in J.
    apply (meets_sound _ (read_from known r)); [|apply J, in_map, I].
    intros k. unfold names, read_from. assert (F := read_sound read _ _ k B).
    destruct (nth_error (symbols c) k) as [a|] eqn:H.
    + destruct F as [x [F G]]. rewrite G. unfold read in F.
      destruct (series (case c) (optimum c) rows (of a)) as [w|] eqn:W; [|discriminate].
      apply of_some in F. subst x.
      apply (symbol_sound (case c) (optimum c) some drawable moving (run c) rows a w (rounds c));
        auto.
      apply Nat.leb_le, S. now apply nth_error_In in H.
    + rewrite F. apply inside_whole.
  - apply (at_most_sound nameless unknown); [|exact N].
    intros k. apply inside_whole.
  - unfold i_at_most in O. destruct (enclosed (truth_above c)) as [i|] eqn:I; [|discriminate].
    apply enclosed_sound in I. apply Z.leb_le in O. unfold read in Q.
    destruct (series (case c) (optimum c) rows (of (truth c))) as [w|] eqn:W; [|discriminate].
    apply of_some in Q. subst expected.
    assert (H := symbol_sound (case c) (optimum c) some drawable moving (run c) rows (truth c) w 1 0 R W
      (proj1 (Nat.leb_le _ _) T) (le_n 1)).
    now apply (i_at_most_sound _ _ i (of_series w (truth c) 0%nat)).
Qed.

(** ** What the hypotheses say of clients and of the start *)

Section Facts.
Variables (s : setting) (xs : list Q).
Let d := dimension s.
Let N := clients s.
Notation val := (value nameless).

Definition everywhere (f : nat -> nat -> bool) : bool :=
  forallb (fun i => forallb (f i) (seq 0 d)) (seq 0 N).

Lemma everywhere_sound f : everywhere f = true ->
  forall i k, (i < N)%nat -> (k < d)%nat -> f i k = true.
Proof.
  unfold everywhere. rewrite forallb_forall. intros H i k I J.
  assert (A := H i (proj2 (in_seq _ _ _) (conj (Nat.le_0_l i) I))). cbv beta in A.
  rewrite forallb_forall in A. apply A, in_seq. lia.
Qed.

Lemma expansion i (x y : vectors s) : (i < N)%nat ->
  loss s i x - loss s i y - inner (gradient s i y) (minus x y)
  = sum d (fun k => val (t_curvature s i k) / 2 * ((x k - y k) * (x k - y k))).
Proof.
  intros I. unfold loss. fold d.
  change (inner (gradient s i y) (minus x y)) with
    (sum d (fun k => curvature s i k * (y k - centre s i k) * (x k + -1 * y k))).
  assert (M : forall a b c : nat -> R,
    sum d a - sum d b - sum d c = sum d (fun k => a k + (-1 * b k + -1 * c k)))
    by (intros; rewrite !sum_add, !sum_scale; ring).
  rewrite M. apply sum_ext. intros k _. change (curvature s i k) with (val (t_curvature s i k)).
  field.
Qed.

Lemma square_apart (x y : vectors s) :
  square (minus x y) = sum d (fun k => (x k - y k) * (x k - y k)).
Proof. apply sum_ext. intros k _. change (minus x y k) with (x k + -1 * y k). ring. Qed.

Definition is_smooth (L : term) : bool := everywhere (fun i k =>
  compared Qle_bool (Opposite L) (t_curvature s i k) && compared Qle_bool (t_curvature s i k) L).

Theorem smooth_clients L : is_smooth L = true -> forall i, (i < N)%nat ->
  smooth (val L) (loss s i) (gradient s i).
Proof.
  intros E i I x y.
  assert (B : forall k, (k < d)%nat -> - val L <= val (t_curvature s i k) <= val L).
  { intros k J. assert (H := everywhere_sound _ E i k I J). apply Bool.andb_true_iff in H.
    destruct H as [H H']. apply (not_above_sound nameless) in H, H'. cbn [value] in H. lra. }
  split.
  - rewrite (square_apart x y), <- sum_scale.
    apply sum_le. intros k J. specialize (B k J).
    change (minus (gradient s i x) (gradient s i y) k) with
      (val (t_curvature s i k) * (x k - centre s i k)
       + -1 * (val (t_curvature s i k) * (y k - centre s i k))).
    set (c := val (t_curvature s i k)) in *.
    replace ((c * (x k - centre s i k) + -1 * (c * (y k - centre s i k)))
      * (c * (x k - centre s i k) + -1 * (c * (y k - centre s i k))))
      with (c * c * ((x k - y k) * (x k - y k))) by ring.
    apply Rmult_le_compat_r; [apply Rle_0_sqr|nra].
  - rewrite expansion, square_apart, <- sum_scale by assumption. apply Rabs_le. split.
    + replace (- sum d (fun k => val L / 2 * ((x k - y k) * (x k - y k))))
        with (sum d (fun k => -1 * (val L / 2 * ((x k - y k) * (x k - y k)))))
        by (rewrite sum_scale; ring).
      apply sum_le. intros k J. specialize (B k J).
      assert (P := Rmult_le_pos (val (t_curvature s i k) + val L) _ ltac:(lra)
        (Rle_0_sqr (x k - y k))). unfold Rsqr in P. lra.
    + apply sum_le. intros k J. specialize (B k J).
      assert (P := Rmult_le_pos (val L - val (t_curvature s i k)) _ ltac:(lra)
        (Rle_0_sqr (x k - y k))). unfold Rsqr in P. lra.
Qed.

Definition is_convex (mu : term) : bool :=
  everywhere (fun i k => compared Qle_bool mu (t_curvature s i k)).

Theorem convex_clients mu : is_convex mu = true -> forall i, (i < N)%nat ->
  strongly_convex (val mu) (loss s i) (gradient s i).
Proof.
  intros E i I x y. assert (X := expansion i x y I). rewrite (square_apart x y), <- sum_scale.
  assert (S : sum d (fun k => val mu / 2 * ((x k - y k) * (x k - y k)))
    <= sum d (fun k => val (t_curvature s i k) / 2 * ((x k - y k) * (x k - y k)))).
  { apply sum_le. intros k J. assert (H := everywhere_sound _ E i k I J).
    apply (not_above_sound nameless) in H.
    assert (P := Rmult_le_pos (val (t_curvature s i k) - val mu) _ ltac:(lra)
      (Rle_0_sqr (x k - y k))). unfold Rsqr in P. lra. }
  lra.
Qed.

(** Clients whose Hessians are the same differ by constant vectors. *)
Definition is_similar (g : term) : bool :=
  everywhere (fun i k => compared Qeq_bool (t_curvature s i k) (t_steep s k))
  && forallb (fun i => compared Qle_bool
       (t_sum d (fun k => t_square (Plus (Times (t_curvature s i k) (t_centre s i k)) (t_ahead s k))))
       (t_square g)) (seq 0 N).

Theorem similar_clients g : is_similar g = true -> forall i x, (i < N)%nat ->
  square (minus (gradient s i x) (full_gradient s x)) <= val g * val g.
Proof.
  unfold is_similar. rewrite Bool.andb_true_iff, forallb_forall. intros [E F] i x I.
  assert (H := F i (proj2 (in_seq _ _ _) (conj (Nat.le_0_l i) I))). cbv beta in H.
  apply (not_above_sound nameless) in H. rewrite value_sum in H.
  eapply Rle_trans; [right|exact H]. apply sum_ext. intros k J.
  change (minus (gradient s i x) (full_gradient s x) k)
    with (val (t_curvature s i k) * (x k - val (t_centre s i k)) + -1 * full_gradient s x k).
  rewrite full_coordinate.
  assert (Q := everywhere_sound _ E i k I J). apply (equal_sound nameless) in Q.
  unfold t_square. cbn [value]. rewrite <- Q. ring.
Qed.

Definition is_optimum : bool := forallb (fun k =>
  compared Qeq_bool (Plus (Times (t_steep s k) (t_optimum xs k)) (t_ahead s k)) (Whole 0)
  && compared Qle_bool (Whole 0) (t_steep s k)) (seq 0 d).

Theorem at_optimum : is_optimum = true ->
  forall x, mean_loss s (point s xs) <= mean_loss s x.
Proof.
  unfold is_optimum. rewrite forallb_forall. intros E x.
  assert (P : 0 <= excess_loss s xs x).
  { rewrite excess_by_coordinates. replace 0 with (sum d (fun _ => 0)) by (rewrite sum_const; ring).
    apply sum_le. intros k J.
    assert (H := E k (proj2 (in_seq _ _ _) (conj (Nat.le_0_l k) J))). cbv beta in H.
    apply Bool.andb_true_iff in H. destruct H as [H S].
    apply (equal_sound nameless) in H. apply (not_above_sound nameless) in S.
    unfold on_square, on_value, on_nothing, t_half, t_square. cbn [value] in *.
    set (p := val (t_steep s k)) in *. set (o := val (t_optimum xs k)) in *.
    replace (val (t_ahead s k)) with (- (p * o)) by lra.
    replace (p / 2 * (x k * x k) + - (p * o) * x k + - (p / 2 * (o * o) + - (p * o) * o))
      with (p / 2 * ((x k - o) * (x k - o))) by field.
    apply Rmult_le_pos; [lra|apply Rle_0_sqr]. }
  unfold excess_loss in P. lra.
Qed.

Definition starts_at (o : quantity) (t : term) : bool :=
  possible s && compared Qeq_bool (t_sum d (fun k =>
    let x := Number (nth k (start s) 0%Q) in
    Plus (Plus (Times (on_square s o k) (t_square x)) (Times (on_value s xs o k) x))
      (on_nothing s xs o k))) t.

Theorem at_start o t : starts_at o t = true -> measure s xs o (point s (start s)) = val t.
Proof.
  unfold starts_at. rewrite Bool.andb_true_iff. intros [P E].
  apply possible_sound in P. destruct P as [some [drawable moving]].
  rewrite measured by assumption. apply (equal_sound nameless) in E. rewrite <- E, value_sum.
  apply sum_ext. intros k _. reflexivity.
Qed.

Theorem noise_unbiased level : possible s = true ->
  unbiased (axis_noise (dimension s) level) level.
Proof. intros P. apply axis_unbiased. apply (possible_sound s P). Qed.

End Facts.

(** A condition, by its place. *)
Theorem condition_holds (c : refutation) : checked c = true ->
  forall r, (r < rounds c)%nat -> forall k l, nth_error (conditions c) k = Some l ->
  holds (names c r) l.
Proof. intros E r L k l I. apply (proj1 (refuted c E) r L). now apply nth_error_In in I. Qed.

(** The kernel compares what is expected after a thousand rounds without unfolding them. *)
Global Opaque after largest.
