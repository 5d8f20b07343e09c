(** Clients that come and go in bursts: a function of the model, and of who was there last, that falls
    in every round; a checker of its certificates, and the proof. *)

From Coq Require Import Reals QArith Qreals List Lra Lia Arith Bool FunctionalExtensionality.
From fltheory Require Import Space Forms Round OneRound Sound Groups Draw Noise Bound Rounds.
Import ListNotations.
Open Scope R_scope.

(** ** How many are there next, and whether one client or two are *)

Section Next.
Variables pi lambda : R.

Definition chance (b : bool) : R := lambda * indicator b + (1 - lambda) * pi.

Lemma on_off_cons b others f : expectation (on_off pi lambda (b :: others)) f =
  chance b * expectation (on_off pi lambda others) (fun s => f (true :: s))
  + (1 - chance b) * expectation (on_off pi lambda others) (fun s => f (false :: s)).
Proof.
  simpl on_off. fold (chance b). induction (on_off pi lambda others) as [|o l IH]; simpl; [ring|].
  simpl in IH. rewrite IH. ring.
Qed.

Lemma on_off_probabilities there : 0 <= pi <= 1 -> 0 <= lambda <= 1 ->
  probabilities (on_off pi lambda there).
Proof.
  intros P L. assert (C : forall b, 0 <= chance b <= 1).
  { intros b. unfold chance. destruct b; simpl; nra. }
  induction there as [|b others [N E]].
  - split; simpl; [intros p [<-|[]]; simpl; lra|ring].
  - split; [|rewrite on_off_cons, E; ring].
    intros p I. simpl in I. apply in_flat_map in I. destruct I as [o [I J]].
    specialize (C b). specialize (N o I). unfold chance in C.
    destruct J as [<-|[<-|[]]]; simpl; nra.
Qed.

(** One more client, who is there with probability p. *)
Definition joined (p : R) (f : nat -> R) (k : nat) : R := p * f (S k) + (1 - p) * f k.

Lemma joined_comm p p' f : joined p (joined p' f) = joined p' (joined p f).
Proof. apply functional_extensionality. intros k. unfold joined. ring. Qed.

Definition joined_all (n m : nat) (f : nat -> R) : nat -> R :=
  Nat.iter n (joined (chance true)) (Nat.iter m (joined (chance false)) f).

Lemma joined_off n m f :
  joined_all n (S m) f = joined (chance false) (joined_all n m f).
Proof.
  unfold joined_all. induction n as [|n IH]; [reflexivity|]. simpl in *. rewrite IH. apply joined_comm.
Qed.

Definition count (there : list bool) (b : bool) : nat := count_occ bool_dec there b.

(** All but some, of whom only is asked whether they were there. *)
Definition others (tags there : list bool) : (nat -> R) -> nat -> R :=
  joined_all (count there true - count tags true) (count there false - count tags false).

Lemma others_cons tags there b f k : (forall b, count tags b <= count there b)%nat ->
  others tags (b :: there) f k =
  chance b * others tags there f (S k) + (1 - chance b) * others tags there f k.
Proof.
  intros H. assert (Ht := H true). assert (Hf := H false). unfold others.
  assert (C : forall a, count (b :: there) a = if bool_dec b a then S (count there a) else count there a)
    by reflexivity.
  rewrite !C. destruct b; simpl bool_dec; cbv iota.
  - rewrite Nat.sub_succ_l by exact Ht. reflexivity.
  - rewrite Nat.sub_succ_l, joined_off by exact Hf. reflexivity.
Qed.

Lemma others_tagged tags there b : others (b :: tags) (b :: there) = others tags there.
Proof. unfold others, count. now destruct b. Qed.

Lemma counted there i b : (i < length there)%nat -> nth i there false = b ->
  forall a, (count [b] a <= count there a)%nat.
Proof.
  intros L E a. unfold count. simpl. destruct (bool_dec b a) as [->|]; [|lia].
  apply count_occ_In. rewrite <- E. now apply nth_In.
Qed.

Lemma number_there there f : forall k,
  expectation (on_off pi lambda there) (fun s => f (k + present s)%nat) = others [] there f k.
Proof.
  induction there as [|b there IH]; intros k.
  - simpl. rewrite Nat.add_0_r. unfold others, count. simpl. ring.
  - rewrite on_off_cons, others_cons by (intros; simpl; lia). rewrite <- !IH.
    f_equal; f_equal; apply expectation_ext; intros p _; f_equal; unfold present; simpl; lia.
Qed.

Lemma one_there there f : forall i k, (i < length there)%nat ->
  expectation (on_off pi lambda there) (fun s => indicator (is_there s i) * f (k + present s)%nat) =
  chance (is_there there i) * others [is_there there i] there f (S k).
Proof.
  unfold is_there. induction there as [|b there IH]; intros [|i] k L; simpl in L; try lia.
  - rewrite on_off_cons. simpl nth. rewrite others_tagged, <- number_there.
    rewrite (expectation_ext _ (fun s => indicator false * _) (fun _ => 0)), expectation_zero
      by (intros; simpl; ring).
    rewrite Rmult_0_r, Rplus_0_r. f_equal. apply expectation_ext. intros p _. simpl. rewrite Rmult_1_l.
    f_equal. unfold present. simpl. lia.
  - rewrite on_off_cons. simpl nth. rewrite others_cons by (apply (counted _ i); [lia|reflexivity]).
    rewrite (expectation_ext _ (fun s => _ * f (k + present (true :: s))%nat)
      (fun s => indicator (nth i s false) * f (S k + present s)%nat))
      by (intros; f_equal; f_equal; unfold present; simpl; lia).
    rewrite (expectation_ext _ (fun s => _ * f (k + present (false :: s))%nat)
      (fun s => indicator (nth i s false) * f (k + present s)%nat)) by reflexivity.
    rewrite !IH by lia. ring.
Qed.

Lemma counted_two there : forall i j, (i < length there)%nat -> (j < length there)%nat -> i <> j ->
  forall a, (count [nth i there false; nth j there false] a <= count there a)%nat.
Proof.
  induction there as [|b there IH]; intros [|i] [|j] I J N a; simpl in I, J; try lia.
  - assert (H := counted there j _ ltac:(lia) eq_refl a). unfold count in *. simpl in *.
    destruct (bool_dec b a); lia.
  - assert (H := counted there i _ ltac:(lia) eq_refl a). unfold count in *. simpl in *.
    destruct (bool_dec b a), (bool_dec (nth i there false) a); lia.
  - assert (H := IH i j ltac:(lia) ltac:(lia) ltac:(lia) a). unfold count in *. simpl in *.
    destruct (bool_dec b a); lia.
Qed.

Lemma others_swap there b b' : others [b; b'] there = others [b'; b] there.
Proof. unfold others, count. now destruct b, b'. Qed.

Lemma two_there there f : forall i j k, (i < length there)%nat -> (j < length there)%nat -> i <> j ->
  expectation (on_off pi lambda there) (fun s =>
    indicator (is_there s i) * indicator (is_there s j) * f (k + present s)%nat) =
  chance (is_there there i) * chance (is_there there j)
    * others [is_there there i; is_there there j] there f (S (S k)).
Proof.
  unfold is_there. induction there as [|b there IH]; intros [|i] [|j] k I J N; simpl in I, J; try lia;
    rewrite on_off_cons; simpl nth.
  - rewrite others_tagged.
    rewrite (expectation_ext _ (fun s => indicator false * _ * _) (fun _ => 0)), expectation_zero
      by (intros; simpl; ring).
    rewrite (expectation_ext _ _ (fun s => indicator (is_there s j) * f (S k + present s)%nat)).
    + rewrite one_there by lia. unfold is_there. ring.
    + intros p _. simpl. unfold is_there. rewrite Rmult_1_l. f_equal. f_equal. unfold present. simpl. lia.
  - rewrite others_swap, others_tagged.
    rewrite (expectation_ext _ (fun s => _ * indicator false * _) (fun _ => 0)), expectation_zero
      by (intros; simpl; ring).
    rewrite (expectation_ext _ _ (fun s => indicator (is_there s i) * f (S k + present s)%nat)).
    + rewrite one_there by lia. unfold is_there. ring.
    + intros p _. simpl. unfold is_there. rewrite Rmult_1_r. f_equal. f_equal. unfold present. simpl. lia.
  - rewrite others_cons by (apply counted_two; lia).
    rewrite (expectation_ext _ (fun s => _ * f (k + present (true :: s))%nat)
      (fun s => indicator (nth i s false) * indicator (nth j s false) * f (S k + present s)%nat))
      by (intros; f_equal; f_equal; unfold present; simpl; lia).
    rewrite (expectation_ext _ (fun s => _ * f (k + present (false :: s))%nat)
      (fun s => indicator (nth i s false) * indicator (nth j s false) * f (k + present s)%nat))
      by reflexivity.
    rewrite !IH by lia. ring.
Qed.

Lemma there_next there i : (i < length there)%nat ->
  expectation (on_off pi lambda there) (fun s => indicator (is_there s i)) = chance (is_there there i).
Proof.
  intros I. assert (C : forall p n, Nat.iter n (joined p) (fun _ => 1) = fun _ => 1).
  { intros p n. induction n as [|n IH]; [reflexivity|]. simpl Nat.iter. rewrite IH.
    apply functional_extensionality. intros k. unfold joined. ring. }
  assert (H := one_there there (fun _ => 1) i 0 I). unfold others, joined_all in H.
  rewrite !C, Rmult_1_r in H. rewrite <- H. apply expectation_ext. intros. ring.
Qed.

(** ** Sums over those who are there next, and over pairs of them *)

Section Sums.
Context {V : space}.
Variables (N : nat) (there : list bool).
Hypothesis all : length there = N.
Implicit Types (f : nat -> R) (g h : nat -> V).

(** Over those who are there. *)
Definition chosen (s : list bool) g : V :=
  total N (fun i => if is_there s i then g i else zero).

Lemma inner_chosen s g v :
  inner (chosen s g) v = sum N (fun i => indicator (is_there s i) * inner (g i) v).
Proof.
  unfold chosen. rewrite inner_total. apply sum_ext. intros i _.
  destruct (is_there s i); simpl; [ring|rewrite inner_zero; ring].
Qed.

(** Over those who were there last, or over those who were not. *)
Definition each (b : bool) (r : nat -> R) : R :=
  sum N (fun i => if eqb (is_there there i) b then r i else 0).
Definition part (b : bool) g : V :=
  total N (fun i => if eqb (is_there there i) b then g i else zero).

Definition first f (b : bool) : R := chance b * others [b] there f 1.
Definition second f (b b' : bool) : R := chance b * chance b' * others [b; b'] there f 2.

Lemma inner_part b g v : inner (part b g) v = each b (fun i => inner (g i) v).
Proof.
  unfold part, each. rewrite inner_total. apply sum_ext. intros i _.
  destruct (eqb _ b); [reflexivity|apply inner_zero].
Qed.

Lemma by_parts (w : bool -> R) r : sum N (fun i => w (is_there there i) * r i) =
  w true * each true r + w false * each false r.
Proof.
  unfold each. rewrite <- !sum_scale, <- sum_add. apply sum_ext. intros i _.
  destruct (is_there there i); simpl; ring.
Qed.

Lemma expected_number f :
  expectation (on_off pi lambda there) (fun s => f (present s)) = others [] there f 0.
Proof. exact (number_there there f 0). Qed.

Lemma expected_each f r : expectation (on_off pi lambda there) (fun s =>
    f (present s) * sum N (fun i => indicator (is_there s i) * r i)) =
  first f true * each true r + first f false * each false r.
Proof.
  rewrite <- by_parts.
  rewrite (expectation_ext _ _ (fun s => sum N (fun i =>
    r i * (indicator (is_there s i) * f (0 + present s)%nat)))).
  - rewrite expectation_sum. apply sum_ext. intros i I.
    rewrite expectation_scale, one_there by lia. unfold first. ring.
  - intros p _. rewrite <- sum_scale. apply sum_ext. intros i _. simpl. ring.
Qed.

Lemma expected_chosen f g v : expectation (on_off pi lambda there) (fun s =>
    f (present s) * inner (chosen s g) v) =
  first f true * inner (part true g) v + first f false * inner (part false g) v.
Proof.
  rewrite !inner_part, <- expected_each. apply expectation_ext. intros p _. f_equal. apply inner_chosen.
Qed.

Lemma expected_pairs f g h : expectation (on_off pi lambda there) (fun s =>
    f (present s) * inner (chosen s g) (chosen s h)) =
  (second f true true * inner (part true g) (part true h)
   + second f true false * inner (part true g) (part false h)
   + second f false true * inner (part false g) (part true h)
   + second f false false * inner (part false g) (part false h))
  + ((first f true - second f true true) * each true (fun i => inner (g i) (h i))
     + (first f false - second f false false) * each false (fun i => inner (g i) (h i))).
Proof.
  set (t := is_there there).
  rewrite (expectation_ext _ _ (fun s => sum N (fun i => sum N (fun j => inner (g i) (h j) *
    (indicator (is_there s i) * indicator (is_there s j) * f (0 + present s)%nat))))).
  2: { intros p _. rewrite inner_chosen, <- sum_scale. apply sum_ext. intros i _.
       rewrite inner_sym, inner_chosen, <- !Rmult_assoc, <- sum_scale. apply sum_ext. intros j _.
       rewrite (inner_sym V (h j)). simpl. ring. }
  rewrite expectation_sum.
  rewrite (sum_ext N _ (fun i => (second f (t i) true * inner (g i) (part true h)
      + second f (t i) false * inner (g i) (part false h))
    + (first f (t i) - second f (t i) (t i)) * inner (g i) (h i))).
  2: { intros i I. rewrite !(inner_sym V (g i) (part _ h)), !inner_part.
       rewrite (expectation_sum (on_off pi lambda there) N (fun s j => inner (g i) (h j) *
         (indicator (is_there s i) * indicator (is_there s j) * f (0 + present s)%nat))).
       rewrite (sum_ext N _ (fun j => second f (t i) (t j) * inner (h j) (g i)
         + (if Nat.eqb j i then (first f (t i) - second f (t i) (t i)) * inner (h j) (g i) else 0))).
       - rewrite sum_add, (by_parts (fun b => second f (t i) b)). f_equal.
         rewrite (sum_delta N (fun j => (first f (t i) - second f (t i) (t i)) * inner (h j) (g i)) i I).
         now rewrite (inner_sym V (h i)).
       - intros j J. rewrite expectation_scale, (inner_sym V (h j)).
         destruct (Nat.eqb_spec j i) as [->|D].
         + rewrite (expectation_ext _ _ (fun s => indicator (is_there s i) * f (0 + present s)%nat))
             by (intros; now rewrite indicator_twice).
           rewrite one_there by lia. unfold first. fold t. ring.
         + rewrite two_there by lia. unfold second. fold t. ring. }
  rewrite !sum_add.
  assert (E := by_parts (fun b => second f b true) (fun i => inner (g i) (part true h))). cbv beta in E.
  fold t in E. rewrite E. clear E.
  assert (E := by_parts (fun b => second f b false) (fun i => inner (g i) (part false h))). cbv beta in E.
  fold t in E. rewrite E. clear E.
  assert (E := by_parts (fun b => first f b - second f b b) (fun i => inner (g i) (h i))). cbv beta in E.
  fold t in E. rewrite E. clear E. rewrite <- !inner_part. ring.
Qed.

End Sums.
End Next.

(** ** The law of a run *)

Lemma on_off_length pi lambda there p :
  In p (on_off pi lambda there) -> length (snd p) = length there.
Proof.
  revert p. induction there as [|b there IH]; intros p I; simpl in I.
  - destruct I as [<-|[]]. reflexivity.
  - apply in_flat_map in I. destruct I as [o [I J]]. specialize (IH o I).
    destruct J as [<-|[<-|[]]]; simpl; lia.
Qed.

Section Run.
Context {A : Type}.
Variables (N : nat) (pi lambda : R) (round : list bool -> A -> A) (x : A).
Let run := in_bursts N pi lambda round x.

Lemma run_length r : forall p, In p (run r) -> length (fst (snd p)) = N.
Proof.
  induction r as [|r IH]; intros p I; unfold run in I; simpl in I.
  - apply in_map_iff in I. destruct I as [o [<- I]]. cbn [fst snd].
    rewrite (on_off_length _ _ _ _ I). apply repeat_length.
  - apply in_flat_map in I. destruct I as [o [I J]]. apply in_map_iff in J. destruct J as [s [<- J]].
    cbn [fst snd]. rewrite (on_off_length _ _ _ _ J). now apply IH.
Qed.

Lemma run_tower f : tower run f (fun o =>
  expectation (on_off pi lambda (fst o)) (fun s => f (s, round s (snd o)))).
Proof.
  intros r. unfold run. simpl in_bursts. induction (in_bursts _ _ _ _ _ r) as [|p l IH]; [reflexivity|].
  cbn [flat_map]. rewrite expectation_app, (expectation_map _ (fst p)
    (fun s => (s, round s (snd (snd p))))), IH. reflexivity.
Qed.

Lemma run_first f :
  expectation (run 0) f = expectation (on_off pi 0 (repeat false N)) (fun s => f (s, x)).
Proof.
  unfold run. simpl in_bursts. induction (on_off _ _ _) as [|p l IH]; simpl; [reflexivity|].
  simpl in IH. now rewrite IH.
Qed.

Lemma run_probabilities r : 0 <= pi <= 1 -> 0 <= lambda <= 1 -> probabilities (run r).
Proof.
  intros P C. induction r as [|r [Pos One]].
  - destruct (on_off_probabilities pi 0 (repeat false N) P ltac:(lra)) as [Pos One]. split.
    + intros p I. unfold run in I. simpl in I. apply in_map_iff in I. destruct I as [o [<- I]]. now apply Pos.
    + now rewrite run_first.
  - split.
    + intros p I. unfold run in I. simpl in I. apply in_flat_map in I. destruct I as [o [I J]].
      apply in_map_iff in J. destruct J as [s [<- J]]. cbn [fst].
      apply Rmult_le_pos; [now apply Pos|].
      exact (proj1 (on_off_probabilities pi _ (fst (snd o)) P C) s J).
    + rewrite run_tower. refine (eq_trans _ One). apply expectation_ext. intros p _.
      apply (proj2 (on_off_probabilities pi _ (fst (snd p)) P C)).
Qed.

(** As often as at first, each client is there in every round. *)
Lemma always_available r i : 0 <= pi <= 1 -> 0 <= lambda <= 1 -> (i < N)%nat ->
  expectation (run r) (fun o => indicator (is_there (fst o) i)) = pi.
Proof.
  intros P C I. induction r as [|r IH].
  - rewrite run_first. cbn [fst]. rewrite there_next by now rewrite repeat_length. unfold chance. ring.
  - rewrite run_tower, (expectation_ext _ _ (fun o =>
      lambda * indicator (is_there (fst o) i) + (1 - lambda) * pi * 1)).
    + rewrite expectation_add, !expectation_scale, IH, (proj2 (run_probabilities r P C)). ring.
    + intros p J. cbn [fst]. rewrite there_next by now rewrite (run_length r p J).
      unfold chance. ring.
Qed.

End Run.

(** A part of the state, which goes on by itself. *)
Lemma part_of_run {A B} N pi lambda (round : list bool -> A -> A) (round' : list bool -> B -> B)
    (of : A -> B) x f r : (forall s y, of (round s y) = round' s (of y)) ->
  expectation (in_bursts N pi lambda round' (of x) r) f =
  expectation (in_bursts N pi lambda round x r) (fun o => f (fst o, of (snd o))).
Proof.
  intros E. revert f. induction r as [|r IH]; intros f; [now rewrite !run_first|].
  rewrite !run_tower, IH. apply expectation_ext. intros p _. cbn [fst snd].
  apply expectation_ext. intros s _. now rewrite E.
Qed.

(** ** What is claimed *)

Record bursts_claim := Bursts {
  crowd : nat;
  availability : Q;
  correlation : Q;
  over_present : bool;  (* whether the server divides by how many are there *)
  of_distance : bool;  (* whether squared distances are summed over rounds, *)
  of_gap : bool;  (* or gaps of F; else the last distance is bounded *)
  at_first : Q;
  heterogeneity_at_first : Q;
  steps : nat;
  step_size : Q;
  server_step : Q;
  all_smoothness : Q;
  all_convexity : Q;
  each_rate : Q;
  each_heterogeneity : Q
}.

(** For what is shared with claims of one round: a client's points and inequalities. *)
Definition the_round (a : bursts_claim) : claim :=
  Claim 1 (steps a) None 0 1 (step_size a) (server_step a) 0 (all_smoothness a) (all_convexity a)
    false false false (each_rate a) 0 0 (each_heterogeneity a) 0 0.

(** Where n clients were there last, S, the function of x is, with z = x - x* and u the sum over S of
    gradients at x* over N,
      a |z|^2 + 2 b <z, u> + c |u|^2 + (d times the sum over S, and e times that over all, of
      their squares) / N,
    and its numbers a to e are a row of [values]. *)
Record bursts_certificate := BurstsCertificate {
  below : Q;
  values : list (list Q);
  pairs_of_present : list pairs;
  pairs_of_absent : list pairs;
  squares_of_rounds : list (list squares);  (* of means, and of what those present, and absent, differ in *)
  squares_from_below : list (list squares);
  squares_at_first : list squares
}.

Section Checker.
Variables (a : bursts_claim) (w : bursts_certificate).
Let c := the_round a.
Let K := steps a.
Let N := crowd a.

Definition whole (n : nat) : Q := inject_Z (Z.of_nat n).
Definition share : Q := Qred (1 / whole N).

(** What a participant's gradients are multiplied by, if n take part. *)
Definition reach (moves : bool) (n : nat) : Q :=
  if moves
  then Qred (server_step a * step_size a / (if over_present a then whole (Nat.max 1 n) else 1))
  else 0%Q.

Definition coefficient (j n : nat) : Q := nth j (nth n (values w) []) 0%Q.
Definition column (factor : nat -> Q) (j : nat) : list Q :=
  map (fun n => times (factor n) (coefficient j n)) (seq 0 (S N)).

(** *** Means over who is there next, if n are there now *)

(** The law of a number, after one more client, who is there with probability p. *)
Fixpoint one_more (p before : Q) (law : list Q) : list Q :=
  match law with
  | [] => [times p before]
  | q :: law' => plus (times p before) (times (1 - p) q) :: one_more p q law'
  end.

(** The mean of the numbers in a list from place k on. *)
Fixpoint mean_by (law l : list Q) (k : nat) : Q :=
  match law with
  | [] => 0%Q
  | p :: law' => plus (times p (nth k l 0%Q)) (mean_by law' l (S k))
  end.

Definition chance_of (lambda : Q) (b : bool) : Q :=
  Qred (lambda * (if b then 1 else 0) + (1 - lambda) * availability a).

Definition law_of (lambda : Q) (n : nat) (tags : list bool) : list Q :=
  Nat.iter (n - count tags true) (one_more (chance_of lambda true) 0)
    (Nat.iter (N - n - count tags false) (one_more (chance_of lambda false) 0) [1%Q]).

(** All laws that are needed: of everybody, and of all but one or two. *)
Definition laws_of (lambda : Q) (n : nat) : list (list Q) :=
  map (law_of lambda n) [[]; [true]; [false]; [true; true]; [true; false]; [false; false]].

Section Means.
Variables (lambda : Q) (laws : list (list Q)) (l : list Q).
Definition mean_of_all : Q := mean_by (nth 0 laws []) l 0.
Definition mean_of_one (b : bool) : Q :=
  times (chance_of lambda b) (mean_by (nth (if b then 1 else 2) laws []) l 1).
Definition mean_of_two (b b' : bool) : Q :=
  times (times (chance_of lambda b) (chance_of lambda b'))
    (mean_by (nth (if b then if b' then 3 else 4 else if b' then 4 else 5) laws []) l 2).
Definition apart_of (b : bool) : Q := mean_of_one b - mean_of_two b b.
End Means.

(** *** Forms in the means: of x - x*, and over those who were there and over those who were not of
    their gradients at their points and at x* *)

Definition size (n : nat) (b : bool) : nat := if b then n else (N - n)%nat.
Definition place_of (b : bool) (j : nat) : nat := S (if b then j else S K + j)%nat.

Definition pull_mean (n : nat) (b : bool) : linear :=
  if (n =? 0)%nat || (N - n =? 0)%nat then []
  else if b then lscale (Qred (- whole (N - n) / whole n)) (unit (place_of false K))
  else unit (place_of false K).

Definition cell_means (n : nat) (b : bool) : list linear :=
  unit 0 :: [] :: map (fun j => unit (place_of b j)) (seq 0 K) ++ [pull_mean n b].

(** A client's sum of gradients, and its gradient at x*. *)
Definition along : linear := 0%Q :: 0%Q :: ones K.
Definition pull : linear := unit (2 + K).

Definition total_of (n : nat) (l : linear) (b : bool) : linear :=
  lscale (whole (size n b)) (combine l (cell_means n b)).

Definition over (f : bool -> quadratic) : quadratic := qadd (f true) (f false).
Definition near : quadratic := product (unit 0) (unit 0).
Definition pulls : quadratic := product pull pull.

Definition now_means (n : nat) : quadratic :=
  let u := total_of n pull true in
  qadd (qscale (coefficient 0 n) near)
    (qadd (qscale (Qred (2 * share * coefficient 1 n)) (both (unit 0) u))
      (qscale (Qred (share * share * coefficient 2 n)) (product u u))).

Definition now_own (n : nat) (b : bool) : quadratic :=
  qscale (Qred (share * ((if b then coefficient 3 n else 0) + coefficient 4 n))) pulls.

Section After.
Variables (lambda : Q) (laws : list (list Q)) (moves : bool) (n : nat).
Let step := reach moves.
Let squares_moved := column (fun n => times (step n) (step n)) 0.
Let moved := column step 0.
Let moved_along := column step 1.
Let once := fun _ : nat => 1%Q.

Definition after_means : quadratic :=
  let d := total_of n along in
  let u := total_of n pull in
  qadd (qscale (mean_of_all laws (column once 0)) near)
    (qadd (over (fun b => both (unit 0)
        (ladd (lscale (Qred (-2 * mean_of_one lambda laws moved b)) (d b))
          (lscale (Qred (2 * share * mean_of_one lambda laws (column once 1) b)) (u b)))))
      (over (fun b => over (fun b' =>
        qadd (qscale (mean_of_two lambda laws squares_moved b b') (both (d b) (d b')))
          (qadd (qscale (Qred (-2 * share * mean_of_two lambda laws moved_along b b')) (both (d b) (u b')))
            (qscale (Qred (share * share * mean_of_two lambda laws (column once 2) b b'))
              (both (u b) (u b')))))))).

Definition after_own (b : bool) : quadratic :=
  qadd (qscale (Qred (apart_of lambda laws squares_moved b)) (product along along))
    (qadd (qscale (Qred (-2 * share * apart_of lambda laws moved_along b)) (both along pull))
      (qscale (Qred (share * (share * apart_of lambda laws (column once 2) b
          + (mean_of_one lambda laws (column once 3) b + mean_of_all laws (column once 4))))) pulls)).

End After.

(** A form in the means, and one in each client's coordinates, add up to something that is not
    negative. *)
Definition proved (n : nat) (means : quadratic) (own : bool -> quadratic) (l : list squares) : bool :=
  is_sum_of_squares (qadd means (over (fun b =>
    qscale (whole (size n b)) (substituted (own b) (cell_means n b))))) (nth 0 l [])
  && forallb (fun b => (size n b <=? 1)%nat
       || is_sum_of_squares (substituted (own b) (differences K)) (nth (if b then 1 else 2) l []))
     [true; false].

Definition pairs_at (n : nat) (b : bool) : pairs :=
  nth n (if b then pairs_of_present w else pairs_of_absent w) [].

Definition gap_share : Q := if of_gap a then share else 0%Q.

Definition round_falls (n : nat) : bool :=
  let laws := laws_of (correlation a) n in
  forallb (fun b => (size n b =? 0)%nat || pairs_fit gap_share K K (pairs_at n b)) [true; false]
  && proved n
       (qadd (qscale (each_rate a) (now_means n))
         (qadd (qscale (-1) (after_means (correlation a) laws true n))
           (if of_distance a then qscale (-1) near else [])))
       (fun b => qadd (group c K (pairs_at n b) 0 0)
         (qadd (qscale (each_rate a) (now_own n b))
           (qadd (qscale (-1) (after_own (correlation a) laws true b))
             (qscale (Qred (share * each_heterogeneity a)) pulls))))
       (nth n (squares_of_rounds w) []).

Definition sums : bool := of_distance a || of_gap a.

Definition bounded_below (n : nat) : bool :=
  proved n (qadd (now_means n) (if sums then [] else qscale (-1) near))
    (fun b => qadd (now_own n b) (qscale (Qred (share * below w)) pulls))
    (nth n (squares_from_below w) []).

Definition begins : bool :=
  let laws := laws_of 0 0 in
  proved 0 (qadd (qscale (at_first a) near) (qscale (-1) (after_means 0 laws false 0)))
    (fun b => qadd (qscale (-1) (after_own 0 laws false b))
      (qscale (Qred (share * (heterogeneity_at_first a - below w))) pulls))
    (squares_at_first w).

Definition proves_bursts : bool :=
  (1 <=? N)%nat && (1 <=? K)%nat && (length (values w) =? S N)%nat
  && negb (Qle_bool (all_smoothness a) 0) && negb (Qle_bool (all_smoothness a) (all_convexity a))
  && Qle_bool 0 (availability a) && Qle_bool (availability a) 1
  && Qle_bool 0 (correlation a) && Qle_bool (correlation a) 1
  && Qle_bool 0 (each_rate a) && Qle_bool 0 (all_convexity a)
  && (if sums then Qeq_bool (each_rate a) 1 else negb (Qle_bool 1 (each_rate a)) && Qeq_bool (below w) 0)
  && negb (of_distance a && of_gap a)
  && forallb round_falls (seq 0 (S N)) && forallb bounded_below (seq 0 (S N)) && begins.

End Checker.

(** ** The claim's meaning *)

Definition round_in_bursts {V : space} (a : bursts_claim) (G : nat -> V -> V) (there : list bool)
    : V -> V :=
  clients_round (crowd a) (if over_present a then Nat.max 1 (present there) else 1) (steps a)
    (Q2R (step_size a)) (Q2R (server_step a)) (exact_gradients G) (is_there there).

Definition holds_in_bursts (a : bursts_claim) : Prop :=
  forall (V : space) (F : nat -> V -> R) (G : nat -> V -> V) (x xs : V) (h : R),
  (forall i, (i < crowd a)%nat ->
    interpolable (Q2R (all_smoothness a)) (Q2R (all_convexity a)) (F i) (G i)) ->
  same (mean_gradient (crowd a) G xs) zero ->
  average (crowd a) (fun i => square (G i xs)) = h ->
  forall T, (0 < T)%nat ->
  let started := Q2R (at_first a) * square (minus x xs) + Q2R (heterogeneity_at_first a) * h in
  let pi := Q2R (availability a) in
  let lambda := Q2R (correlation a) in
  let round := round_in_bursts a G in
  if of_distance a
  then average T (fun t => expectation (in_bursts (crowd a) pi lambda round x t)
      (fun state => square (minus (snd state) xs)))
    <= started / INR T + Q2R (each_heterogeneity a) * h
  else if of_gap a
  then expectation (in_bursts (crowd a) pi lambda (summing round) (x, zero) T)
      (fun state => mean_loss (crowd a) F (scale (/ INR T) (snd (snd state))))
      - mean_loss (crowd a) F xs
    <= started / INR T + Q2R (each_heterogeneity a) * h
  else let r := Q2R (each_rate a) in
    expectation (in_bursts (crowd a) pi lambda round x T) (fun state => square (minus (snd state) xs))
    <= r ^ T * started + (1 - r ^ T) / (1 - r) * (Q2R (each_heterogeneity a) * h).

(** ** The proof *)

Lemma count_all there : (count there true + count there false = length there)%nat.
Proof. unfold count. induction there as [|[] there IH]; simpl; lia. Qed.

Lemma sum_filter (P : nat -> bool) n (f : nat -> R) : sum n (fun i => if P i then f i else 0) =
  sum (length (filter P (seq 0 n))) (fun k => f (nth k (filter P (seq 0 n)) 0%nat)).
Proof.
  induction n as [|n IH]; [reflexivity|].
  rewrite seq_S, filter_app, app_length. cbn [sum filter Nat.add]. rewrite IH. clear IH.
  set (l := filter P (seq 0 n)). destruct (P n); cbn [length].
  - rewrite Nat.add_1_r. cbn [sum]. f_equal.
    + apply sum_ext. intros k I. now rewrite app_nth1.
    + now rewrite app_nth2, Nat.sub_diag by lia.
  - rewrite Nat.add_0_r, app_nil_r. ring.
Qed.

Lemma length_filter there b :
  length (filter (fun i => eqb (is_there there i) b) (seq 0 (length there))) = count there b.
Proof.
  unfold is_there, count. induction there as [|e there IH]; [reflexivity|].
  cbn [length]. change (seq 0 (S (length there))) with (0%nat :: seq 1 (length there)).
  assert (M : forall (P : nat -> bool) l, length (filter P (map S l)) = length (filter (fun i => P (S i)) l)).
  { intros P l. induction l as [|i l H]; simpl; [reflexivity|]. destruct (P (S i)); simpl; lia. }
  rewrite <- seq_shift. cbn [filter nth count_occ].
  destruct (bool_dec e b) as [->|D].
  - rewrite eqb_reflx. cbn [length]. rewrite M. cbn [nth]. now rewrite IH.
  - replace (eqb e b) with false by (destruct e, b; simpl; congruence). rewrite M. exact IH.
Qed.

Section Numbers.
Variables (a : bursts_claim) (w : bursts_certificate).

Definition entries (l : list Q) (k : nat) : R := Q2R (nth k l 0%Q).

(** The mean of f from place k on. *)
Fixpoint dot (law : list Q) (f : nat -> R) (k : nat) : R :=
  match law with [] => 0 | p :: law' => Q2R p * f k + dot law' f (S k) end.

Lemma mean_value law l k : Q2R (mean_by law l k) = dot law (entries l) k.
Proof.
  revert k. induction law as [|p law IH]; intros k; cbn [mean_by dot]; [apply Q2R_0|].
  now rewrite value_plus, value_times, IH.
Qed.

Lemma dot_one_more p q law f k :
  dot (one_more p q law) f k = Q2R p * Q2R q * f k + joined (Q2R p) (dot law f) k.
Proof.
  unfold joined. revert q k. induction law as [|r law IH]; intros q k; cbn [one_more dot].
  - rewrite value_times. ring.
  - rewrite IH, value_plus, !value_times, Q2R_minus, Q2R_1. ring.
Qed.

Lemma dot_iter p m law f : dot (Nat.iter m (one_more p 0) law) f = Nat.iter m (joined (Q2R p)) (dot law f).
Proof.
  induction m as [|m IH]; [reflexivity|]. apply functional_extensionality. intros k. simpl Nat.iter.
  rewrite dot_one_more, IH, Q2R_0. ring.
Qed.

Lemma chance_value lambda b :
  Q2R (chance_of a lambda b) = chance (Q2R (availability a)) (Q2R lambda) b.
Proof.
  unfold chance_of, chance. rewrite Q2R_Qred, Q2R_plus, !Q2R_mult, Q2R_minus, Q2R_1.
  destruct b; cbn [indicator]; rewrite ?Q2R_1, ?Q2R_0; ring.
Qed.

Lemma law_value lambda tags there l k : length there = crowd a ->
  Q2R (mean_by (law_of a lambda (present there) tags) l k) =
  others (Q2R (availability a)) (Q2R lambda) tags there (entries l) k.
Proof.
  intros E. assert (C := count_all there). rewrite mean_value.
  unfold law_of, others, joined_all. replace (crowd a - present there)%nat with (count there false)
    by (unfold present; unfold count in *; lia).
  change (present there) with (count there true). rewrite !dot_iter, !chance_value. do 2 f_equal.
  apply functional_extensionality. intros j. cbn [dot]. rewrite Q2R_1. ring.
Qed.

Lemma column_value factor j : length (values w) = S (crowd a) ->
  entries (column a w factor j) = fun n => Q2R (factor n) * Q2R (coefficient w j n).
Proof.
  intros E. apply functional_extensionality. intros n. unfold entries, column.
  destruct (Nat.lt_ge_cases n (S (crowd a))) as [I|O].
  - rewrite (nth_indep _ 0%Q (times (factor 0%nat) (coefficient w j 0))) by
      now rewrite map_length, seq_length.
    rewrite (map_nth (fun n => times (factor n) (coefficient w j n))), seq_nth by exact I.
    apply value_times.
  - rewrite nth_overflow by (rewrite map_length, seq_length; lia).
    unfold coefficient. rewrite (nth_overflow (values w)) by lia. destruct j; cbn [nth]; rewrite Q2R_0; ring.
Qed.

End Numbers.

Section Proof.
Variables (a : bursts_claim) (w : bursts_certificate).
Hypothesis ok : proves_bursts a w = true.
Let c := the_round a.
Let K := steps a.
Let N := crowd a.
Let pi := Q2R (availability a).
Let eta := Q2R (step_size a).
Let srv := Q2R (server_step a).
Let L := Q2R (all_smoothness a).
Let mu := Q2R (all_convexity a).
Let sh := Q2R (share a).

Lemma bursts_checked : (0 < N)%nat /\ (0 < K)%nat /\ length (values w) = S N /\ 0 < L /\ mu < L /\
  0 <= pi <= 1 /\ 0 <= Q2R (correlation a) <= 1 /\ 0 <= Q2R (each_rate a) /\
  (if sums a then Q2R (each_rate a) = 1 else Q2R (each_rate a) < 1 /\ Q2R (below w) = 0) /\
  of_distance a && of_gap a = false /\
  (forall n, (n <= N)%nat -> round_falls a w n = true /\ bounded_below a w n = true) /\
  begins a w = true.
Proof.
  assert (H := ok). unfold proves_bursts in H. fold N K in H.
  do 15 (apply andb_prop in H; destruct H as [H ?]).
  repeat match goal with
  | H : (_ <=? _)%nat = true |- _ => apply Nat.leb_le in H
  | H : (_ =? _)%nat = true |- _ => apply Nat.eqb_eq in H
  | H : negb (Qle_bool _ _) = true |- _ => apply Q2R_lt in H
  | H : negb (_ && _) = true |- _ => apply negb_true_iff in H
  | H : Qle_bool _ _ = true |- _ => apply Q2R_le in H
  end.
  rewrite ?Q2R_0, ?Q2R_1 in *. unfold L, mu, pi.
  repeat split; auto.
  - destruct (sums a).
    + rewrite <- Q2R_1. now apply Qeq_eqR, Qeq_bool_iff.
    + match goal with H : _ && _ = true |- _ => apply andb_prop in H; destruct H as [B Z] end.
      apply Q2R_lt in B. rewrite Q2R_1 in B. split; [exact B|now apply Qeq_bool_0].
  - match goal with H : forallb (round_falls a w) _ = true |- _ => rewrite forallb_forall in H; apply H end.
    apply in_seq. lia.
  - match goal with H : forallb (bounded_below a w) _ = true |- _ =>
      rewrite forallb_forall in H; apply H end. apply in_seq. lia.
Qed.

Lemma convex_gap : 0 <= mu.
Proof.
  assert (H := ok). unfold proves_bursts in H. do 5 (apply andb_prop in H; destruct H as [H _]).
  apply andb_prop in H. apply Q2R_nonneg, H.
Qed.

Lemma share_value : sh = / INR N.
Proof.
  destruct bursts_checked as (P & _). assert (0 < INR N) by now apply lt_0_INR.
  unfold sh, share, whole. fold N. rewrite Q2R_Qred, Q2R_div, Q2R_1, Q2R_inject; [field; lra|].
  apply Q2R_nonzero. rewrite Q2R_inject. lra.
Qed.

Lemma whole_value n : Q2R (whole n) = INR n.
Proof. apply Q2R_inject. Qed.

Variables (V : space) (F : nat -> V -> R) (G : nat -> V -> V) (xs : V) (h : R).
Hypothesis interpolated : forall i, (i < N)%nat -> interpolable L mu (F i) (G i).
Hypothesis optimal : same (mean_gradient N G xs) zero.
Hypothesis spread : average N (fun i => square (G i xs)) = h.

Let g (i : nat) : V := G i xs.
Let co (j n : nat) : R := Q2R (coefficient w j n).

(** The function that falls. *)
Definition potential (there : list bool) (y : V) : R :=
  let n := present there in
  let z := minus y xs in
  let u := chosen N there g in
  co 0 n * square z + 2 * sh * co 1 n * inner z u + sh * sh * co 2 n * square u
  + sh * (co 3 n * sum N (fun i => indicator (is_there there i) * square (g i))
          + co 4 n * sum N (fun i => square (g i))).

Section State.
Variables (there : list bool) (x : V).
Hypothesis all : length there = N.
Let n := present there.
Let z : V := minus x xs.

(** A client's gradients at its points, of which x* is the last. *)
Definition own (i b : nat) : V := G i (local_point (G i) K x xs eta b).
Definition changed (i : nat) : V := total K (own i).
Definition coords (i : nat) : list V := map (coordinate z zero (own i)) (seq 0 (K + 3)).

Lemma own_last i : own i K = g i.
Proof. unfold own. now rewrite local_last. Qed.

Lemma lin_along i : same (lin (along a) (coords i)) (changed i).
Proof.
  intros v. unfold along, coords, changed. fold K. replace (K + 3)%nat with (S (S (S K))) by lia.
  change (seq 0 (S (S (S K)))) with (0 :: 1 :: seq 2 (S K))%nat. cbn [map lin]. unfold ones.
  rewrite !inner_add, !inner_scale, lin_repeat, Q2R_0, Q2R_1, inner_total by lia. cbn [coordinate Nat.add].
  ring.
Qed.

Lemma lin_pull i : same (lin (pull a) (coords i)) (g i).
Proof.
  intros v. unfold pull, coords. fold K. rewrite lin_unit_seq by lia. cbn [coordinate Nat.add].
  now rewrite own_last.
Qed.

(** *** Those who were there, and those who were not *)

Definition cell (b : bool) : list nat := filter (fun i => eqb (is_there there i) b) (seq 0 N).
Definition member_of (b : bool) (k : nat) : nat := nth k (cell b) 0%nat.
Let many (b : bool) : nat := size a n b.

Lemma cell_size b : length (cell b) = many b.
Proof.
  unfold cell, many, size. fold N. rewrite <- all, length_filter. assert (C := count_all there).
  unfold n, present. unfold count in *. destruct b; lia.
Qed.

Lemma fewer : (n <= N)%nat.
Proof. assert (C := count_all there). unfold n, present. unfold count in C. lia. Qed.

Lemma member_below b k : (k < many b)%nat -> (member_of b k < N)%nat.
Proof.
  intros I. rewrite <- cell_size in I. assert (H := nth_In (cell b) 0%nat I). unfold cell at 2 in H.
  apply filter_In in H. destruct H as [H _]. apply in_seq in H. unfold member_of. lia.
Qed.

Lemma each_is b r : each N there b r = sum (many b) (fun k => r (member_of b k)).
Proof. unfold each. rewrite sum_filter. fold (cell b). now rewrite cell_size. Qed.

Lemma each_average b r : (0 < many b)%nat ->
  each N there b r = INR (many b) * average (many b) (fun k => r (member_of b k)).
Proof.
  intros P. rewrite each_is. unfold average. assert (INR (many b) <> 0) by (apply not_0_INR; lia).
  field. assumption.
Qed.

Lemma each_both r : sum N r = each N there true r + each N there false r.
Proof.
  assert (H := by_parts N there (fun _ => 1) r). rewrite <- (sum_ext N (fun i => 1 * r i)) by
    (intros; ring). rewrite H. ring.
Qed.

(** *** The means *)

Definition mean_at (b : bool) (j : nat) : V := mean (many b) (fun k => own (member_of b k) j).
Definition mean_coordinate (j : nat) : V :=
  match j with
  | O => z
  | S j => if (j <? S K)%nat then mean_at true j else mean_at false (j - S K)
  end.
Definition means : list V := map mean_coordinate (seq 0 (S (S K + S K))).

Lemma lin_first v : inner (lin (unit 0) means) v = inner z v.
Proof. unfold means. rewrite lin_unit_seq by lia. reflexivity. Qed.

Lemma lin_place b j v : (j <= K)%nat ->
  inner (lin (unit (place_of a b j)) means) v = inner (mean_at b j) v.
Proof.
  intros J. unfold means, place_of. fold K. destruct b.
  - rewrite lin_unit_seq by lia. cbn [mean_coordinate]. destruct (Nat.ltb_spec j (S K)); [reflexivity|lia].
  - rewrite lin_unit_seq by lia. cbn [mean_coordinate].
    destruct (Nat.ltb_spec (S K + j) (S K)); [lia|]. now replace (S K + j - S K)%nat with j by lia.
Qed.

Lemma pulls_vanish v :
  each N there true (fun i => inner (g i) v) + each N there false (fun i => inner (g i) v) = 0.
Proof.
  rewrite <- each_both. assert (O := optimal v). unfold mean_gradient in O.
  rewrite inner_mean, inner_zero in O. unfold average in O.
  destruct bursts_checked as (P & _). assert (0 < / INR N) by (apply Rinv_0_lt_compat; now apply lt_0_INR).
  apply Rmult_integral in O. destruct O as [O|O]; [lra|exact O].
Qed.

Lemma lin_pull_mean b v : (0 < many b)%nat ->
  inner (lin (pull_mean a n b) means) v = inner (mean_at b K) v.
Proof.
  intros P. assert (Z := pulls_vanish v).
  assert (M : forall b, (0 < many b)%nat ->
    INR (many b) * inner (mean_at b K) v = each N there b (fun i => inner (g i) v)).
  { intros b' P'. rewrite each_average by exact P'. unfold mean_at. rewrite inner_mean. f_equal.
    apply average_ext. intros k _. now rewrite own_last. }
  assert (E : forall b, many b = 0%nat -> each N there b (fun i => inner (g i) v) = 0)
    by (intros b' E; rewrite each_is, E; reflexivity).
  assert (Z0 : forall b, (0 < many b)%nat -> many (negb b) = 0%nat -> inner (mean_at b K) v = 0).
  { intros b' P' E'. assert (Q := M b' P'). apply E in E'. assert (0 < INR (many b')) by now apply lt_0_INR.
    assert (each N there b' (fun i => inner (g i) v) = 0) by (destruct b'; simpl in E'; lra).
    rewrite H0 in Q. apply Rmult_integral in Q. lra. }
  unfold pull_mean. fold N. assert (Le := fewer).
  assert (St : many true = n) by reflexivity. assert (Sf : many false = (N - n)%nat) by reflexivity.
  destruct (Nat.eqb_spec n 0) as [E0|E0]; [|destruct (Nat.eqb_spec (N - n) 0) as [E1|E1]]; cbn [orb].
  - rewrite lin_nil. destruct b; [lia|]. symmetry. apply Z0; [exact P|]. cbn [negb]. lia.
  - rewrite lin_nil. destruct b; [|lia]. symmetry. apply Z0; [exact P|]. cbn [negb]. lia.
  - fold K. destruct b; [|apply lin_place; lia].
    rewrite lin_lscale, lin_place, Q2R_Qred, Q2R_div by
      (try lia; apply Q2R_nonzero; rewrite whole_value; apply not_0_INR; lia).
    rewrite Q2R_opp, !whole_value. assert (T := M true P). assert (T' := M false ltac:(lia)).
    rewrite St in T. rewrite Sf in T'. assert (0 < INR n) by (apply lt_0_INR; lia).
    apply (Rmult_eq_reg_l (INR n)); [|lra]. rewrite T. fold K. field_simplify; [|lra]. lra.
Qed.

Lemma cell_means_are b : (0 < many b)%nat ->
  Forall2 same (map (fun t => lin t means) (cell_means a n b))
    (map (fun j => mean (many b) (fun k => coordinate z zero (own (member_of b k)) j)) (seq 0 (K + 3))).
Proof.
  intros P. unfold cell_means. fold K. replace (K + 3)%nat with (2 + (K + 1))%nat by lia.
  rewrite seq_app, seq_app. cbn [map]. rewrite !map_app. cbn [seq map app Nat.add].
  constructor; [|constructor].
  - intros v. rewrite lin_first. symmetry. now apply (mean_constant (many b) z).
  - intros v. rewrite lin_nil. symmetry. exact (eq_trans (mean_constant (many b) zero P v) (inner_zero V v)).
  - apply Forall2_app.
    + rewrite <- (seq_shift K 1), <- (seq_shift K 0), !map_map.
      apply Forall2_map. intros j I v. apply in_seq in I. rewrite lin_place by lia. reflexivity.
    + constructor; [|constructor]. intros v. now rewrite lin_pull_mean.
Qed.

Lemma lin_total_of l b v :
  inner (lin (total_of a n l b) means) v = each N there b (fun i => inner (lin l (coords i)) v).
Proof.
  unfold total_of. rewrite lin_lscale, whole_value, lin_combine. fold (many b).
  destruct (Nat.eq_dec (many b) 0) as [E|P].
  - rewrite each_is, E. simpl. ring.
  - rewrite each_average by lia. f_equal.
    rewrite (lin_same l _ _ (cell_means_are b ltac:(lia)) v).
    rewrite (lin_mean (many b) (fun k j => coordinate z zero (own (member_of b k)) j) l (seq 0 (K + 3)) v).
    now rewrite inner_mean.
Qed.

Lemma total_along b : same (lin (total_of a n (along a) b) means) (part N there b changed).
Proof.
  intros v. rewrite lin_total_of, inner_part. unfold each. apply sum_ext. intros i _.
  now rewrite (lin_along i v).
Qed.

Lemma total_pull b : same (lin (total_of a n (pull a) b) means) (part N there b g).
Proof.
  intros v. rewrite lin_total_of, inner_part. unfold each. apply sum_ext. intros i _.
  now rewrite (lin_pull i v).
Qed.

(** What the blocks prove. *)
Lemma proved_value P A l : proved a n P A l = true ->
  0 <= form P means + (each N there true (fun i => form (A true) (coords i))
    + each N there false (fun i => form (A false) (coords i))).
Proof.
  unfold proved. intros E. apply andb_prop in E. destruct E as [E D].
  assert (H := sum_of_squares _ _ means E). unfold over in H.
  rewrite !form_qadd, !form_qscale, !whole_value in H.
  assert (C : forall b, INR (many b) * form (substituted (A b) (cell_means a n b)) means <=
    each N there b (fun i => form (A b) (coords i))).
  { intros b. destruct (Nat.eq_dec (many b) 0) as [Z|Pos]; [rewrite each_is, Z; simpl; lra|].
    rewrite each_average by lia. apply Rmult_le_compat_l; [apply pos_INR|].
    assert (S := group_split (many b) K z zero (fun k => own (member_of b k)) ltac:(lia) (A b)
      (cell_means a n b) means (cell_means_are b ltac:(lia))).
    match type of S with _ = ?r =>
      change (average (many b) (fun k => form (A b) (coords (member_of b k))) = r) in S end.
    rewrite S. clear S.
    assert (0 <= average (many b) (fun k => form (substituted (A b) (differences K))
      (differing (many b) K (fun k => own (member_of b k)) k))); [|lra].
    rewrite forallb_forall in D. specialize (D b ltac:(destruct b; simpl; auto)).
    apply orb_prop in D. destruct D as [One|S].
    - apply Nat.leb_le in One. fold (many b) in One. replace (many b) with 1%nat by lia.
      unfold average. cbn [sum]. rewrite form_of_zeros; [simpl; lra|].
      unfold differing. apply Forall_map, Forall_forall. intros j _ v.
      unfold apart, mean. rewrite inner_minus, inner_scale. cbn [total INR].
      rewrite inner_add, !inner_zero. field.
    - apply average_nonneg. intros k _. exact (sum_of_squares _ _ _ S). }
  assert (Ct := C true). assert (Cf := C false). unfold many in *. lra.
Qed.

Lemma each_add b r s : each N there b (fun i => r i + s i) = each N there b r + each N there b s.
Proof. rewrite !each_is. apply sum_add. Qed.

Lemma each_scale b k r : each N there b (fun i => k * r i) = k * each N there b r.
Proof. rewrite !each_is. apply sum_scale. Qed.

Lemma each_ext b r s : (forall i, r i = s i) -> each N there b r = each N there b s.
Proof. intros E. unfold each. apply sum_ext. intros i _. now rewrite E. Qed.

Lemma each_le b r s : (forall i, (i < N)%nat -> r i <= s i) -> each N there b r <= each N there b s.
Proof.
  intros E. rewrite !each_is. apply sum_le. intros k I. now apply E, member_below.
Qed.

(** *** The function now *)

Lemma form_near : form near means = square z.
Proof. unfold near. rewrite form_product. unfold square. apply same_inner; intros v; apply lin_first. Qed.

Lemma form_along l : form (both (unit 0) l) means = inner (lin l means) z.
Proof.
  rewrite form_both, inner_sym. apply same_inner; [apply same_refl|]. intros v. apply lin_first.
Qed.

Lemma form_pulls i : form (pulls a) (coords i) = square (g i).
Proof. unfold pulls. rewrite form_product. unfold square. apply same_inner; apply lin_pull. Qed.

Lemma chosen_now : same (chosen N there g) (part N there true g).
Proof.
  intros v. rewrite inner_chosen, inner_part. unfold each. apply sum_ext. intros i _.
  destruct (is_there there i); simpl; ring.
Qed.

Lemma each_now r : sum N (fun i => indicator (is_there there i) * r i) = each N there true r.
Proof. unfold each. apply sum_ext. intros i _. destruct (is_there there i); simpl; ring. Qed.

Lemma two : Q2R 2 = 2.
Proof. unfold Q2R. simpl. lra. Qed.

Lemma minus_two : Q2R (-2) = -2.
Proof. unfold Q2R. simpl. lra. Qed.

Lemma minus_one : Q2R (-1) = -1.
Proof. unfold Q2R. simpl. lra. Qed.

Lemma potential_value : potential there x = form (now_means a w n) means
  + (each N there true (fun i => form (now_own a w n true) (coords i))
     + each N there false (fun i => form (now_own a w n false) (coords i))).
Proof.
  unfold potential, now_means, now_own. fold n z.
  rewrite !form_qadd, !form_qscale, form_near, form_along, form_product, !Q2R_Qred, !Q2R_mult, two.
  fold sh.
  assert (U := fun v => eq_trans (total_pull true v) (eq_sym (chosen_now v))).
  rewrite (U z), (same_inner _ _ _ _ U U).
  rewrite (each_ext true _ (fun i => sh * (co 3 n + co 4 n) * square (g i))).
  2: { intros i. rewrite form_qscale, form_pulls, Q2R_Qred, Q2R_mult, Q2R_plus. reflexivity. }
  rewrite (each_ext false _ (fun i => sh * co 4 n * square (g i))).
  2: { intros i. rewrite form_qscale, form_pulls, Q2R_Qred, Q2R_mult, Q2R_plus, Q2R_0.
       fold sh (co 4 n). ring. }
  rewrite !each_scale, each_now, (each_both (fun i => square (g i))), (inner_sym V z).
  unfold square, co. ring.
Qed.

(** *** The function after a round *)

Section After.
Variables (lambda : Q) (moves : bool) (y : list bool -> V).
Let rho (k : nat) : R := Q2R (reach a moves k).
Hypothesis moved : forall s v,
  inner (minus (y s) xs) v = inner z v - rho (present s) * inner (chosen N s changed) v.

Let factor (f : nat -> Q) (j : nat) : nat -> R := fun k => Q2R (f k) * co j k.
Let once : nat -> Q := fun _ => 1%Q.
Let step := reach a moves.
Let step_squared : nat -> Q := fun k => times (step k) (step k).

Let laws := laws_of a lambda n.

Lemma zeroth_value f j : Q2R (mean_of_all laws (column a w f j)) =
  others pi (Q2R lambda) [] there (factor f j) 0.
Proof.
  destruct bursts_checked as (_ & _ & E & _). unfold mean_of_all, laws, laws_of. cbn [map nth].
  unfold n. rewrite law_value by exact all. now rewrite column_value.
Qed.

Lemma first_value f j b : Q2R (mean_of_one a lambda laws (column a w f j) b) =
  first pi (Q2R lambda) there (factor f j) b.
Proof.
  destruct bursts_checked as (_ & _ & E & _). unfold mean_of_one, first.
  replace (nth _ laws []) with (law_of a lambda (present there) [b]) by now destruct b.
  rewrite value_times, chance_value, law_value by exact all. now rewrite column_value.
Qed.

Lemma second_value f j b b' : Q2R (mean_of_two a lambda laws (column a w f j) b b') =
  second pi (Q2R lambda) there (factor f j) b b'.
Proof.
  destruct bursts_checked as (_ & _ & E & _). unfold mean_of_two, second.
  replace (nth _ laws []) with (law_of a lambda (present there) [b; b']) by now destruct b, b'.
  rewrite !value_times, !chance_value, law_value by exact all. now rewrite column_value.
Qed.

Lemma apart_value f j b : Q2R (apart_of a lambda laws (column a w f j) b) =
  first pi (Q2R lambda) there (factor f j) b - second pi (Q2R lambda) there (factor f j) b b.
Proof. unfold apart_of. now rewrite Q2R_minus, first_value, second_value. Qed.

Lemma own_after b i : form (after_own a w lambda laws moves b) (coords i) =
  (first pi (Q2R lambda) there (factor step_squared 0) b
    - second pi (Q2R lambda) there (factor step_squared 0) b b) * inner (changed i) (changed i)
  + (-2 * sh * (first pi (Q2R lambda) there (factor step 1) b
    - second pi (Q2R lambda) there (factor step 1) b b) * inner (changed i) (g i)
  + sh * (sh * (first pi (Q2R lambda) there (factor once 2) b
      - second pi (Q2R lambda) there (factor once 2) b b)
    + (first pi (Q2R lambda) there (factor once 3) b
      + others pi (Q2R lambda) [] there (factor once 4) 0)) * inner (g i) (g i)).
Proof.
  unfold after_own. rewrite !form_qadd, !form_qscale, form_pulls, form_product, form_both.
  rewrite !Q2R_Qred, !Q2R_mult, !Q2R_plus, !Q2R_mult, minus_two.
  rewrite !apart_value, first_value, zeroth_value.
  rewrite (same_inner _ _ _ _ (lin_along i) (lin_along i)), (same_inner _ _ _ _ (lin_along i) (lin_pull i)).
  reflexivity.
Qed.

Lemma potential_after : expectation (on_off pi (Q2R lambda) there) (fun s => potential s (y s)) =
  form (after_means a w lambda laws moves n) means
  + (each N there true (fun i => form (after_own a w lambda laws moves true) (coords i))
     + each N there false (fun i => form (after_own a w lambda laws moves false) (coords i))).
Proof.
  set (E := on_off pi (Q2R lambda) there).
  rewrite (expectation_ext E _ (fun s =>
    square z * factor once 0 (present s)
    + (-2 * (factor step 0 (present s) * inner (chosen N s changed) z)
    + (factor step_squared 0 (present s) * inner (chosen N s changed) (chosen N s changed)
    + (2 * sh * (factor once 1 (present s) * inner (chosen N s g) z)
    + (-2 * sh * (factor step 1 (present s) * inner (chosen N s changed) (chosen N s g))
    + (sh * sh * (factor once 2 (present s) * inner (chosen N s g) (chosen N s g))
    + (sh * (factor once 3 (present s) * sum N (fun i => indicator (is_there s i) * square (g i)))
    + sh * sum N (fun i => square (g i)) * factor once 4 (present s))))))))).
  2: { intros p _. set (s := snd p). unfold potential, factor, step_squared, once.
       rewrite value_times, Q2R_1. fold (rho (present s)).
       assert (A : square (minus (y s) xs) = square z - 2 * rho (present s) * inner (chosen N s changed) z
         + rho (present s) * rho (present s) * inner (chosen N s changed) (chosen N s changed)).
       { unfold square. rewrite (moved s), (inner_sym V z), (moved s), (inner_sym V (chosen N s changed)
           (minus (y s) xs)), (moved s), (inner_sym V z (chosen N s changed)). ring. }
       rewrite A, (moved s), (inner_sym V z (chosen N s g)).
       change (Q2R (step (present s))) with (rho (present s)). unfold square. ring. }
  rewrite !expectation_add, !expectation_scale. unfold E.
  rewrite !expected_number, !(expected_chosen _ _ N there all), !(expected_pairs _ _ N there all),
    !(expected_each _ _ N there all).
  rewrite !(each_ext _ _ _ (own_after _)), !each_add, !each_scale.
  unfold after_means, over.
  rewrite !form_qadd, !form_qscale, form_near, !form_along, !lin_ladd, !lin_lscale, !form_both.
  rewrite !(total_along _ z), !(total_pull _ z).
  rewrite !(fun b b' => same_inner _ _ _ _ (total_along b) (total_along b')),
    !(fun b b' => same_inner _ _ _ _ (total_along b) (total_pull b')),
    !(fun b b' => same_inner _ _ _ _ (total_pull b) (total_pull b')).
  rewrite !Q2R_Qred, !Q2R_mult, two, minus_two.
  rewrite !zeroth_value, !first_value, !second_value. fold sh.
  change (fun n0 : nat => times (reach a moves n0) (reach a moves n0)) with step_squared.
  change (reach a moves) with step. change (fun _ : nat => 1%Q) with once.
  rewrite (each_both (fun i => square (g i))). unfold square. ring.
Qed.

End After.
(** *** A client's inequalities *)

Lemma conditions_below i l : (i < N)%nat -> pairs_fit (gap_share a) K K l = true ->
  form (group c K l 0 0) (coords i) <= - (Q2R (gap_share a) * (F i x - F i xs)).
Proof.
  intros I fit. destruct bursts_checked as (_ & P & _ & Lp & M & _).
  assert (H := local_value (F i) (G i) c K x xs zero _ _ 0%Q 0%Q P Lp M (interpolated i I) fit).
  rewrite Q2R_0 in H. unfold coords, z, own, eta. cbn [c client_lr the_round] in H. lra.
Qed.

Lemma round_moves s v : inner (minus (round_in_bursts a G s x) xs) v =
  inner z v - Q2R (reach a true (present s)) * inner (chosen N s changed) v.
Proof.
  unfold round_in_bursts, clients_round. fold N K eta srv.
  set (m := if over_present a then Nat.max 1 (present s) else 1%nat).
  assert (P : INR m <> 0) by (apply not_0_INR; unfold m; destruct (over_present a); lia).
  assert (R : Q2R (reach a true (present s)) = srv * eta / INR m).
  { unfold reach. rewrite Q2R_Qred. unfold m, srv, eta in *. destruct (over_present a).
    - rewrite Q2R_div, Q2R_mult, whole_value; [reflexivity|].
      apply Q2R_nonzero. now rewrite whole_value.
    - rewrite Q2R_div, Q2R_mult, Q2R_1 by discriminate. reflexivity. }
  rewrite R, inner_chosen, inner_minus, inner_add, inner_scale, inner_total. unfold z.
  rewrite inner_minus.
  rewrite (sum_ext N _ (fun i => - eta * (indicator (is_there s i) * inner (changed i) v))).
  - rewrite sum_scale. field. exact P.
  - intros i _. destruct (is_there s i); cbn [indicator].
    + rewrite Rmult_1_l. exact (local_change (G i) K x xs eta v).
    + rewrite inner_zero. ring.
Qed.

(** *** One round *)

Definition gain (y : V) : R :=
  if of_distance a then square (minus y xs)
  else if of_gap a then mean_loss N F y - mean_loss N F xs else 0.

Lemma spread_shared : sh * sum N (fun i => square (g i)) = h.
Proof. rewrite share_value, <- spread. reflexivity. Qed.

Lemma gap_value : Q2R (gap_share a) * sum N (fun i => F i x - F i xs) =
  if of_gap a then mean_loss N F x - mean_loss N F xs else 0.
Proof.
  unfold gap_share, mean_loss, average. destruct (of_gap a); [|rewrite Q2R_0; ring].
  fold sh. rewrite share_value. unfold Rminus. rewrite sum_add.
  rewrite (sum_ext N (fun i => - F i xs) (fun i => -1 * F i xs)), sum_scale by (intros; ring). ring.
Qed.

Theorem falls : expectation (on_off pi (Q2R (correlation a)) there) (fun s =>
    potential s (round_in_bursts a G s x)) <=
  Q2R (each_rate a) * potential there x - gain x + Q2R (each_heterogeneity a) * h.
Proof.
  destruct bursts_checked as (_ & _ & _ & _ & _ & _ & _ & _ & _ & One & Blocks & _).
  destruct (Blocks n fewer) as [H _]. unfold round_falls in H.
  apply andb_prop in H. destruct H as [fit H].
  rewrite forallb_forall in fit.
  assert (T := proved_value _ _ _ H). clear H.
  rewrite (potential_after (correlation a) true (fun s => round_in_bursts a G s x) round_moves).
  rewrite potential_value, <- spread_shared, (each_both (fun i => square (g i))).
  assert (S : forall b, each N there b (fun i => form (qadd (group c K (pairs_at w n b) 0 0)
      (qadd (qscale (each_rate a) (now_own a w n b))
        (qadd (qscale (-1) (after_own a w (correlation a) (laws_of a (correlation a) n) true b))
          (qscale (Qred (share a * each_heterogeneity a)) (pulls a))))) (coords i)) <=
    - (Q2R (gap_share a) * each N there b (fun i => F i x - F i xs))
    + (Q2R (each_rate a) * each N there b (fun i => form (now_own a w n b) (coords i))
      + (-1 * each N there b (fun i =>
          form (after_own a w (correlation a) (laws_of a (correlation a) n) true b) (coords i))
      + sh * Q2R (each_heterogeneity a) * each N there b (fun i => square (g i))))).
  { intros b. destruct (Nat.eq_dec (size a n b) 0) as [Z|some].
    { assert (E : forall r, each N there b r = 0) by (intros r; rewrite each_is; unfold many; now rewrite Z).
      rewrite !E. lra. }
    apply Rle_trans with (each N there b (fun i => - Q2R (gap_share a) * (F i x - F i xs)
      + (Q2R (each_rate a) * form (now_own a w n b) (coords i)
        + (-1 * form (after_own a w (correlation a) (laws_of a (correlation a) n) true b) (coords i)
        + sh * Q2R (each_heterogeneity a) * square (g i)))));
      [|rewrite !each_add, !each_scale; right; ring].
    apply each_le. intros i I.
    rewrite !form_qadd, !form_qscale, form_pulls, Q2R_Qred, Q2R_mult, minus_one. fold sh.
    specialize (fit b ltac:(destruct b; simpl; auto)). apply orb_prop in fit.
    destruct fit as [Z|fit]; [now apply Nat.eqb_eq in Z|].
    assert (Z := conditions_below i _ I fit). lra. }
  assert (St := S true). assert (Sf := S false). clear S. cbv beta in T.
  fold c K in T. rewrite !form_qadd, !form_qscale, minus_one in T.
  assert (Y := gap_value). rewrite each_both in Y.
  assert (D : form (if of_distance a then qscale (-1) near else []) means
      - (if of_gap a then mean_loss N F x - mean_loss N F xs else 0) = - gain x).
  { unfold gain. destruct (of_distance a), (of_gap a); try discriminate One;
      rewrite ?form_qscale, ?form_near, ?minus_one; unfold z, form; rewrite ?bil_nil; ring. }
  rewrite <- Y in D. lra.
Qed.

Theorem stays_above : (if sums a then 0 else square (minus x xs)) - Q2R (below w) * h <= potential there x.
Proof.
  destruct bursts_checked as (_ & _ & _ & _ & _ & _ & _ & _ & _ & _ & Blocks & _).
  destruct (Blocks n fewer) as [_ H]. unfold bounded_below in H.
  assert (T := proved_value _ _ _ H). cbv beta in T.
  rewrite potential_value, <- spread_shared, (each_both (fun i => square (g i))).
  assert (S : forall b, each N there b (fun i => form (qadd (now_own a w n b)
      (qscale (Qred (share a * below w)) (pulls a))) (coords i)) =
    each N there b (fun i => form (now_own a w n b) (coords i))
      + sh * Q2R (below w) * each N there b (fun i => square (g i))).
  { intros b. rewrite <- each_scale, <- each_add. apply each_ext. intros i.
    now rewrite !form_qadd, !form_qscale, form_pulls, Q2R_Qred, Q2R_mult. }
  rewrite !S, form_qadd in T.
  destruct (sums a); [unfold form at 2 in T; rewrite bil_nil in T|
    rewrite form_qscale, form_near, minus_one in T; unfold z in T]; lra.
Qed.

End State.

(** *** At first, and in all rounds *)

Lemma begins_below x : expectation (on_off pi 0 (repeat false N)) (fun s => potential s x) <=
  Q2R (at_first a) * square (minus x xs) + (Q2R (heterogeneity_at_first a) - Q2R (below w)) * h.
Proof.
  destruct bursts_checked as (_ & _ & _ & _ & _ & _ & _ & _ & _ & _ & _ & H).
  set (nobody := repeat false N). assert (all : length nobody = N) by apply repeat_length.
  assert (none : present nobody = 0%nat).
  { unfold nobody, present. generalize N. intros m. induction m as [|m IH]; [reflexivity|exact IH]. }
  unfold begins in H. rewrite <- none in H.
  assert (T := proved_value nobody x all _ _ _ H). cbv beta in T.
  replace 0 with (Q2R 0) at 1 by apply Q2R_0.
  rewrite (potential_after nobody x all 0 false (fun _ => x)).
  2: { intros s v. unfold reach. rewrite Q2R_0. ring. }
  rewrite <- spread_shared, (each_both nobody (fun i => square (g i))).
  assert (S : forall b, each N nobody b (fun i => form (qadd
      (qscale (-1) (after_own a w 0 (laws_of a 0 (present nobody)) false b))
      (qscale (Qred (share a * (heterogeneity_at_first a - below w))) (pulls a))) (coords x i)) =
    -1 * each N nobody b (fun i => form (after_own a w 0 (laws_of a 0 (present nobody)) false b) (coords x i))
      + sh * (Q2R (heterogeneity_at_first a) - Q2R (below w)) * each N nobody b (fun i => square (g i))).
  { intros b. rewrite <- !(each_scale nobody all), <- (each_add nobody all). apply each_ext. intros i.
    now rewrite form_qadd, !form_qscale, (form_pulls nobody x all), Q2R_Qred, Q2R_mult, Q2R_minus,
      minus_one. }
  rewrite !S, form_qadd, !form_qscale, form_near, minus_one in T by exact all. lra.
Qed.

(** The state of a run, with what rounds have gained so far, and with the sum of models so far. *)
Let counting (there : list bool) (o : V * (V * R)) : V * (V * R) :=
  (round_in_bursts a G there (fst o), (add (fst (snd o)) (fst o), snd (snd o) + gain (fst o))).
Let run (x : V) : nat -> law (list bool * (V * (V * R))) :=
  in_bursts N pi (Q2R (correlation a)) counting (x, (zero, 0)).

Lemma run_proper x r : probabilities (run x r).
Proof.
  destruct bursts_checked as (_ & _ & _ & _ & _ & P & C & _). now apply run_probabilities.
Qed.

Let value (o : list bool * (V * (V * R))) : R := potential (fst o) (fst (snd o)).
Let gained (o : list bool * (V * (V * R))) : R := snd (snd (snd o)).

Lemma stays_above_expected x T :
  expectation (run x T) (fun o => if sums a then 0 else square (minus (fst (snd o)) xs))
    - Q2R (below w) * h <= expectation (run x T) value.
Proof.
  destruct (run_proper x T) as [Pos One].
  apply Rle_trans with (expectation (run x T) (fun o =>
    (if sums a then 0 else square (minus (fst (snd o)) xs)) + - (Q2R (below w) * h) * 1));
    [rewrite expectation_add, expectation_scale, One; lra|].
  apply expectation_le_met; [exact Pos|]. intros p I.
  assert (H := stays_above (fst (snd p)) (fst (snd (snd p))) (run_length _ _ _ _ _ T p I)).
  unfold value. lra.
Qed.

(** If the bound is on a sum, potential and gains together grow by the floor at most. *)
Theorem summed x T : Q2R (each_rate a) = 1 ->
  expectation (run x T) value + expectation (run x T) gained <=
  Q2R (at_first a) * square (minus x xs) + (Q2R (heterogeneity_at_first a) - Q2R (below w)) * h
  + Q2R (each_heterogeneity a) * h * INR T.
Proof.
  intros One. rewrite <- expectation_add.
  assert (H := all_rounds_met (run x) (fun o => value o + gained o) _ (fun _ => 0) 1 0
    (Q2R (each_heterogeneity a) * h) Rle_0_1 (run_proper x) (run_tower _ _ _ _ _ _)).
  assert (D : forall r p, In p (run x r) ->
    expectation (on_off pi (Q2R (correlation a)) (fst (snd p))) (fun s =>
      value (s, counting s (snd (snd p))) + gained (s, counting s (snd (snd p)))) <=
    1 * (value (snd p) + gained (snd p)) - 0 * 0 + Q2R (each_heterogeneity a) * h).
  { intros r p I. destruct bursts_checked as (_ & _ & _ & _ & _ & P & C & _).
    assert (F1 := falls (fst (snd p)) (fst (snd (snd p))) (run_length _ _ _ _ _ r p I)).
    rewrite One in F1. unfold value, gained, counting. cbn [fst snd].
    rewrite expectation_add, (expectation_ext _ (fun _ => _ + _)
      (fun _ => (snd (snd (snd (snd p))) + gain (fst (snd (snd p)))) * 1)) by (intros; ring).
    rewrite expectation_scale, (proj2 (on_off_probabilities _ _ _ P C)). lra. }
  specialize (H D T). rewrite geometric_one, pow1, Rmult_1_l, Rmult_0_l, Rplus_0_r in H.
  apply Rle_trans with (1 := H). unfold run. rewrite run_first. unfold value, gained. cbn [fst snd].
  rewrite expectation_add, expectation_zero. assert (B := begins_below x). lra.
Qed.

Theorem gained_in_mean x T : (0 < T)%nat -> sums a = true ->
  / INR T * expectation (run x T) gained <=
  (Q2R (at_first a) * square (minus x xs) + Q2R (heterogeneity_at_first a) * h) / INR T
  + Q2R (each_heterogeneity a) * h.
Proof.
  intros P E. destruct bursts_checked as (_ & _ & _ & _ & _ & _ & _ & _ & One & _). rewrite E in One.
  assert (H := summed x T One). assert (B := stays_above_expected x T). rewrite E, expectation_zero in B.
  assert (Pos : 0 < INR T) by now apply lt_0_INR.
  apply (Rmult_le_reg_l (INR T)); [exact Pos|]. unfold Rdiv.
  apply Rle_trans with (expectation (run x T) gained); [right; field; lra|].
  apply Rle_trans with (Q2R (at_first a) * square (minus x xs) + Q2R (heterogeneity_at_first a) * h
    + Q2R (each_heterogeneity a) * h * INR T); [lra|]. right. field. lra.
Qed.

(** Gains are summed along a run, and their expectations add up. *)
Lemma expected_gains x T : expectation (run x T) gained =
  sum T (fun t => expectation (in_bursts N pi (Q2R (correlation a)) (round_in_bursts a G) x t)
    (fun o => gain (snd o))).
Proof.
  destruct bursts_checked as (_ & _ & _ & _ & _ & P & C & _).
  induction T as [|T IH].
  - unfold run. rewrite run_first. unfold gained. cbn [fst snd]. apply expectation_zero.
  - cbn [sum]. rewrite <- IH.
    rewrite (part_of_run _ _ _ counting (round_in_bursts a G) fst (x, (zero, 0))) by reflexivity.
    fold (run x T). rewrite <- expectation_add. unfold run. rewrite run_tower.
    apply expectation_ext. intros p _. unfold gained, counting. cbn [fst snd].
    rewrite (expectation_ext _ _ (fun _ => (snd (snd (snd (snd p))) + gain (fst (snd (snd p)))) * 1))
      by (intros; ring).
    rewrite expectation_scale, (proj2 (on_off_probabilities _ _ _ P C)). ring.
Qed.

(** F lies above its tangents. *)
Lemma tangent y q : 0 <= mu ->
  mean_loss N F q + inner (mean_gradient N G q) (minus y q) <= mean_loss N F y.
Proof.
  intros nonneg. destruct bursts_checked as (P & _ & _ & Lp & M & _).
  unfold mean_gradient. rewrite inner_mean. unfold mean_loss. rewrite <- average_add.
  unfold average. apply Rmult_le_compat_l; [left; apply Rinv_0_lt_compat; now apply lt_0_INR|].
  apply sum_le. intros i I. assert (H := interpolated i I y q).
  set (v := minus y q) in *. set (s := minus (G i y) (G i q)) in *.
  assert (S : 0 <= square (minus s (scale mu v))) by apply square_nonneg.
  assert (E : (square s / L + mu * square v - 2 * (mu / L) * inner s v) / (2 * (1 - mu / L)) =
    (square (minus s (scale mu v)) + mu * (L - mu) * square v) / (2 * (L - mu))).
  { unfold square. rewrite !inner_minus, !inner_minus_r, !inner_scale, !inner_scale_r, (inner_sym V v s).
    field. split; lra. }
  assert (0 <= (square (minus s (scale mu v)) + mu * (L - mu) * square v) / (2 * (L - mu))).
  { apply Rmult_le_pos; [|left; apply Rinv_0_lt_compat; lra].
    assert (Q := square_nonneg v). assert (0 <= mu * (L - mu)) by (apply Rmult_le_pos; lra). nra. }
  lra.
Qed.

Lemma mean_model_value x T : 0 <= mu -> of_distance a = false -> of_gap a = true ->
  forall p, In p (run x T) -> forall q,
  INR T * (mean_loss N F q - mean_loss N F xs) + inner (mean_gradient N G q) (fst (snd (snd (snd p))))
    - INR T * inner (mean_gradient N G q) q <= gained (snd p).
Proof.
  intros nonneg D E. unfold gained. induction T as [|T IH]; intros p I q.
  - unfold run in I. simpl in I. apply in_map_iff in I. destruct I as [o [<- _]].
    cbn [fst snd INR]. rewrite inner_zero_r. lra.
  - unfold run in I. simpl in_bursts in I. apply in_flat_map in I. destruct I as [o [I J]].
    apply in_map_iff in J. destruct J as [s [<- _]]. specialize (IH o I q).
    unfold counting. cbn [fst snd]. rewrite inner_add_r, S_INR. unfold gain. rewrite D, E.
    assert (H := tangent (fst (snd (snd o))) q nonneg). rewrite inner_minus_r in H. lra.
Qed.

Theorem mean_model x T : (0 < T)%nat -> 0 <= mu -> of_distance a = false -> of_gap a = true ->
  expectation (in_bursts N pi (Q2R (correlation a)) (summing (round_in_bursts a G)) (x, zero) T)
    (fun o => mean_loss N F (scale (/ INR T) (snd (snd o)))) - mean_loss N F xs
  <= / INR T * expectation (run x T) gained.
Proof.
  intros P nonneg D E. assert (Pos : 0 < INR T) by now apply lt_0_INR.
  rewrite (part_of_run _ _ _ counting (summing (round_in_bursts a G))
    (fun o => (fst o, fst (snd o))) (x, (zero, 0))) by reflexivity.
  fold (run x T). cbn [fst snd]. destruct (run_proper x T) as [Prob One].
  rewrite <- expectation_scale.
  apply Rle_trans with (expectation (run x T) (fun o =>
      mean_loss N F (scale (/ INR T) (fst (snd (snd o)))) + - mean_loss N F xs * 1)).
  - rewrite expectation_add, expectation_scale, One. lra.
  - apply expectation_le_met; [exact Prob|]. intros p I.
    assert (H := mean_model_value x T nonneg D E p I (scale (/ INR T) (fst (snd (snd (snd p)))))).
    rewrite inner_scale_r in H. apply (Rmult_le_reg_l (INR T)); [exact Pos|].
    rewrite <- Rmult_assoc, Rinv_r, Rmult_1_l by lra.
    apply Rle_trans with (2 := H). right. field. lra.
Qed.

Theorem last_model x T : sums a = false ->
  expectation (in_bursts N pi (Q2R (correlation a)) (round_in_bursts a G) x T)
    (fun o => square (minus (snd o) xs)) <=
  Q2R (each_rate a) ^ T * (Q2R (at_first a) * square (minus x xs) + Q2R (heterogeneity_at_first a) * h)
  + (1 - Q2R (each_rate a) ^ T) / (1 - Q2R (each_rate a)) * (Q2R (each_heterogeneity a) * h).
Proof.
  intros E. destruct bursts_checked as (_ & _ & _ & _ & _ & _ & _ & R & Z & _). rewrite E in Z.
  destruct Z as [Less Z]. assert (E' := E). unfold sums in E'. apply orb_false_iff in E'.
  destruct E' as [ED EG].
  assert (H := all_rounds_met (run x) value _ (fun _ => 0) _ 0 (Q2R (each_heterogeneity a) * h) R
    (run_proper x) (run_tower _ _ _ _ _ _)).
  assert (D : forall r p, In p (run x r) ->
    expectation (on_off pi (Q2R (correlation a)) (fst (snd p)))
      (fun s => value (s, counting s (snd (snd p)))) <=
    Q2R (each_rate a) * value (snd p) - 0 * 0 + Q2R (each_heterogeneity a) * h).
  { intros r p I. assert (F1 := falls (fst (snd p)) (fst (snd (snd p))) (run_length _ _ _ _ _ r p I)).
    unfold gain in F1. rewrite ED, EG in F1. unfold value, counting. cbn [fst snd]. lra. }
  specialize (H D T). rewrite geometric_value, Rmult_0_l, Rplus_0_r in H by lra.
  assert (B := stays_above_expected x T). rewrite E, Z in B.
  rewrite (part_of_run _ _ _ counting (round_in_bursts a G) fst (x, (zero, 0))) by reflexivity.
  fold (run x T). cbn [fst snd].
  unfold run in H at 2. rewrite run_first in H. unfold value in H at 2. cbn [fst snd] in H.
  assert (S := begins_below x). rewrite Z in S.
  apply (Rmult_le_compat_l (Q2R (each_rate a) ^ T)) in S; [|now apply pow_le]. unfold Rdiv in *. lra.
Qed.

End Proof.

(** Whatever the checker accepts holds. *)
Theorem one_in_bursts a w : proves_bursts a w = true -> holds_in_bursts a.
Proof.
  intros ok V F G x xs h I O S T P started.
  assert (M := gained_in_mean a w ok V F G xs h I O S x T P).
  assert (Sum := expected_gains a w ok V F G xs x T).
  assert (J := mean_model a w ok V F G xs I x T P).
  assert (H := last_model a w ok V F G xs h I O S x T).
  destruct (bursts_checked a w ok) as (_ & _ & _ & _ & _ & _ & _ & _ & _ & N & _).
  unfold sums, gain in *. destruct (of_distance a), (of_gap a); try discriminate N.
  - rewrite Sum in M. exact (M eq_refl).
  - exact (Rle_trans _ _ _ (J (convex_gap a w ok) eq_refl eq_refl) (M eq_refl)).
  - exact (H eq_refl).
Qed.

Ltac bursts_in_numbers H :=
  cbv beta iota zeta delta [holds_in_bursts round_in_bursts crowd availability correlation over_present
    of_distance of_gap at_first heterogeneity_at_first steps step_size server_step all_smoothness
    all_convexity each_rate each_heterogeneity] in H; in_numbers H.
