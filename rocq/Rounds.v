(** All rounds: what one round's inequality gives when it is iterated. *)

From Coq Require Import Reals List Lra Lia.
From fltheory Require Import Space Round Draw.
Open Scope R_scope.

(** 1 + rate + rate^2 + ..., as many terms as there were rounds. *)
Fixpoint geometric (rate : R) (r : nat) : R :=
  match r with O => 0 | S r => rate * geometric rate r + 1 end.

Lemma geometric_value rate r : rate <> 1 -> geometric rate r = (1 - rate ^ r) / (1 - rate).
Proof.
  intros N. assert (1 - rate <> 0) by lra.
  induction r as [|r IH]; simpl; [|rewrite IH]; field; assumption.
Qed.

Lemma geometric_one r : geometric 1 r = INR r.
Proof. induction r as [|r IH]; [reflexivity|]. rewrite S_INR. simpl geometric. lra. Qed.

(** [gain] is what a round makes [value] smaller by besides, in the weighted mean over rounds; it need
    do so where rounds lead. *)
Theorem all_rounds_met {A : Type} (iterates : nat -> law A) (value after gain : A -> R)
    (rate speed floor : R) :
  0 <= rate -> (forall r, probabilities (iterates r)) -> tower iterates value after ->
  (forall r p, In p (iterates r) ->
    after (snd p) <= rate * value (snd p) - speed * gain (snd p) + floor) ->
  forall r, expectation (iterates r) value
    + speed * sum r (fun k => rate ^ (r - 1 - k) * expectation (iterates k) gain)
    <= rate ^ r * expectation (iterates 0%nat) value + floor * geometric rate r.
Proof.
  intros P L T H r. induction r as [|r IH]; [simpl; lra|].
  destruct (L r) as [N C].
  assert (B : expectation (iterates (S r)) value <= rate * expectation (iterates r) value
    - speed * expectation (iterates r) gain + floor).
  { rewrite T. apply Rle_trans with (expectation (iterates r)
      (fun x => rate * value x + (- speed * gain x + floor * 1))).
    - apply expectation_le_met; [exact N|]. intros p I. specialize (H r p I). lra.
    - rewrite !expectation_add, !expectation_scale, C. lra. }
  assert (E : sum (S r) (fun k => rate ^ (S r - 1 - k) * expectation (iterates k) gain) =
    rate * sum r (fun k => rate ^ (r - 1 - k) * expectation (iterates k) gain)
    + expectation (iterates r) gain).
  { cbn [sum]. replace (S r - 1 - r)%nat with O by lia. rewrite <- sum_scale. f_equal; [|simpl; ring].
    apply sum_ext. intros k I. replace (S r - 1 - k)%nat with (S (r - 1 - k)) by lia. simpl. ring. }
  rewrite E. apply (Rmult_le_compat_l rate) in IH; [|exact P].
  cbn [geometric pow]. lra.
Qed.

Theorem all_rounds_gain {A : Type} (iterates : nat -> law A) (value after gain : A -> R)
    (rate speed floor : R) :
  0 <= rate -> (forall r, probabilities (iterates r)) -> tower iterates value after ->
  (forall x, after x <= rate * value x - speed * gain x + floor) ->
  forall r, expectation (iterates r) value
    + speed * sum r (fun k => rate ^ (r - 1 - k) * expectation (iterates k) gain)
    <= rate ^ r * expectation (iterates 0%nat) value + floor * geometric rate r.
Proof. intros P L T H. apply (all_rounds_met iterates value after); auto. Qed.

(** Where nothing is forgotten, the mean over rounds is a plain one. *)
Theorem all_rounds_steady {A : Type} (iterates : nat -> law A) (value after gain : A -> R)
    (speed floor : R) :
  (forall r, probabilities (iterates r)) -> tower iterates value after ->
  (forall x, after x <= value x - speed * gain x + floor) ->
  forall r, expectation (iterates r) value + speed * sum r (fun k => expectation (iterates k) gain)
    <= expectation (iterates 0%nat) value + floor * INR r.
Proof.
  intros L T H r.
  assert (B := all_rounds_gain iterates value after gain 1 speed floor Rle_0_1 L T
    ltac:(intros x; rewrite Rmult_1_l; apply H) r).
  rewrite geometric_one, pow1, Rmult_1_l in B. apply Rle_trans with (2 := B). right. f_equal. f_equal.
  apply sum_ext. intros k _. rewrite pow1. ring.
Qed.

Theorem all_rounds {A : Type} (iterates : nat -> law A) (value after : A -> R) (rate floor : R) :
  0 <= rate -> (forall r, probabilities (iterates r)) -> tower iterates value after ->
  (forall x, after x <= rate * value x + floor) ->
  forall r, expectation (iterates r) value <=
    rate ^ r * expectation (iterates 0%nat) value + floor * geometric rate r.
Proof.
  intros P L T H r. assert (B := all_rounds_gain iterates value after (fun _ => 0) rate 0 floor P L T
    ltac:(intros x; specialize (H x); lra) r). lra.
Qed.

(** ** The tower property is what independent rounds have *)

Lemma expectation_app {A} (l l' : law A) f :
  expectation (l ++ l') f = expectation l f + expectation l' f.
Proof. induction l as [|p l IH]; simpl; [ring|]. rewrite IH. ring. Qed.

Lemma expectation_map {A B} (l : law A) (a : R) (h : A -> B) f :
  expectation (map (fun o => (a * fst o, h (snd o))) l) f = a * expectation l (fun o => f (h o)).
Proof. induction l as [|p l IH]; simpl; [ring|]. rewrite IH. ring. Qed.

Section Independent.
Context {V : space}.

Definition step_on (l : law V) (next : V -> law V) : law V :=
  flat_map (fun p => map (fun o => (fst p * fst o, snd o)) (next (snd p))) l.

Fixpoint played (next : V -> law V) (x : V) (r : nat) : law V :=
  match r with O => (1, x) :: nil | S r => step_on (played next x r) next end.

(** A law of the next point for each point, drawn anew each round. *)
Theorem independent_rounds (next : V -> law V) (x : V) (value : V -> R) :
  tower (played next x) value (fun y => expectation (next y) value).
Proof.
  intros r. simpl. induction (played next x r) as [|p l IH]; simpl; [reflexivity|].
  rewrite expectation_app, (expectation_map (next (snd p)) (fst p) (fun o => o)), IH. reflexivity.
Qed.

Lemma independent_probabilities (next : V -> law V) (x : V) :
  (forall y, probabilities (next y)) -> forall r, probabilities (played next x r).
Proof.
  intros L r. induction r as [|r [P C]].
  - split; simpl; [|ring]. intros p [<-|[]]. simpl. lra.
  - split.
    + intros p I. apply in_flat_map in I. destruct I as [o [I J]].
      apply in_map_iff in J. destruct J as [u [<- J]].
      apply Rmult_le_pos; [now apply P|now apply (L (snd o))].
    + rewrite (independent_rounds next x (fun _ => 1) r).
      transitivity (expectation (played next x r) (fun _ => 1)); [|exact C].
      apply expectation_ext. intros p _. apply (L (snd p)).
Qed.

(** A client round with probability [q], else a server step. *)
Definition either {A B} (q : R) (draws : law A) (clients : A -> V) (noises : law B)
    (server : B -> V) : law V :=
  map (fun o => (q * fst o, clients (snd o))) draws
  ++ map (fun o => ((1 - q) * fst o, server (snd o))) noises.

Theorem tower_of_rounds {A B} q (draws : law A) (clients : V -> A -> V) (noises : law B)
    (server : V -> B -> V) (x : V) (value : V -> R) :
  tower (played (fun y => either q draws (clients y) noises (server y)) x) value
    (fun y => q * expectation draws (fun who => value (clients y who))
              + (1 - q) * expectation noises (fun noise => value (server y noise))).
Proof.
  intros r. rewrite independent_rounds. apply expectation_ext. intros p _.
  unfold either. now rewrite expectation_app, !expectation_map.
Qed.

End Independent.
