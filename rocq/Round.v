(** The round that certificates speak of, in plain mathematics: nothing here is about proofs.

The first [n] clients may be drawn, the next [s] never take part. *)

From Coq Require Import Reals List Bool.
From fltheory Require Import Space.
Open Scope R_scope.

Section Round.
Context {V : space}.

(** ** Clients *)

(** What every L-smooth and mu-strongly convex loss [F] with gradient [G] fulfils, for any two
    points (Taylor, Hendrickx and Glineur 2017, Theorem 4): the one fact on losses that is used. *)
Definition interpolable (L mu : R) (F : V -> R) (G : V -> V) : Prop :=
  forall x y,
    F y + inner (G y) (minus x y)
      + (square (minus (G x) (G y)) / L + mu * square (minus x y)
         - 2 * (mu / L) * inner (minus (G x) (G y)) (minus x y)) / (2 * (1 - mu / L))
    <= F x.

(** The mean of [N] losses, and its gradient. *)
Definition mean_loss (N : nat) (F : nat -> V -> R) (x : V) : R := average N (fun i => F i x).
Definition mean_gradient (N : nat) (G : nat -> V -> V) (x : V) : V := mean N (fun i => G i x).

(** ** One round *)

(** [g k y] is the gradient that is seen at [y] at local step [k]. *)
Fixpoint local_sgd (step : R) (g : nat -> V -> V) (steps : nat) (x : V) : V :=
  match steps with
  | O => x
  | S k => let y := local_sgd step g k x in minus y (scale step (g k y))
  end.

(** Participants make [K] local steps each, and the server adds [server_lr] times the mean change of
    [m] of them. *)
Definition clients_round (N m K : nat) (client_lr server_lr : R) (g : nat -> nat -> V -> V)
    (drawn : nat -> bool) (x : V) : V :=
  add x (scale (server_lr / INR m) (total N (fun i =>
    if drawn i then minus (local_sgd client_lr (g i) K x) x else zero))).

(** What clients see: their gradients, or these and [xi i k] at client i's local step k. *)
Definition exact_gradients (G : nat -> V -> V) (i k : nat) (y : V) : V := G i y.
Definition noisy_gradients (G : nat -> V -> V) (xi : nat -> nat -> V) (i k : nat) (y : V) : V :=
  add (G i y) (xi i k).

(** The server makes one step along the gradient of F, which has some noise. *)
Definition server_round (N : nat) (lr : R) (G : nat -> V -> V) (noise x : V) : V :=
  minus x (scale lr (add (mean_gradient N G x) noise)).

End Round.

(** ** What is random *)

(** Outcomes and their probabilities. *)
Definition law (A : Type) := list (R * A).

Definition expectation {A : Type} (l : law A) (value : A -> R) : R :=
  fold_right (fun p rest => fst p * value (snd p) + rest) 0 l.

(** They are not negative, and sum to one. *)
Definition probabilities {A : Type} (l : law A) : Prop :=
  (forall p, In p l -> 0 <= fst p) /\ expectation l (fun _ => 1) = 1.

(** The tower property: what is expected of [value] after a round is what is expected, over the
    point [x] before it, of [after x], which is what a round from [x] gives in expectation. *)
Definition tower {A : Type} (iterates : nat -> law A) (value after : A -> R) : Prop :=
  forall r, expectation (iterates (S r)) value = expectation (iterates r) after.

(** Noise without bias, whose mean square is at most [sigma] squared. *)
Record unbiased {V : space} (l : law V) (sigma : R) : Prop := {
  noise_certain : expectation l (fun _ => 1) = 1;
  noise_mean : forall v : V, expectation l (fun noise => inner noise v) = 0;
  noise_square : expectation l square <= sigma * sigma
}.

(** The mean of a random vector. *)
Definition expected {A : Type} {V : space} (l : law A) (f : A -> V) : V :=
  fold_right (fun p rest => add (scale (fst p) (f (snd p))) rest) zero l.

(** Noise of clients' gradients: [xi i k] at client i's local step k has mean square at most [sigma]
    squared and no bias, whatever the client's noise was before; clients' noises are independent. *)
Record noise_of_clients {V : space} (l : law (nat -> nat -> V)) (n K : nat) (sigma : R) : Prop := {
  of_probabilities : probabilities l;
  of_square : forall i k, (i < n)%nat -> (k < K)%nat ->
    expectation l (fun xi => square (xi i k)) <= sigma * sigma;
  without_bias : forall i k (past : list V -> V), (i < n)%nat -> (k < K)%nat ->
    expectation l (fun xi => inner (xi i k) (past (map (xi i) (seq 0 k)))) = 0;
  independent : forall i j (f g : list V -> V), (i < n)%nat -> (j < n)%nat -> i <> j ->
    expectation l (fun xi => inner (f (map (xi i) (seq 0 K))) (g (map (xi j) (seq 0 K))))
    = inner (expected l (fun xi => f (map (xi i) (seq 0 K))))
        (expected l (fun xi => g (map (xi j) (seq 0 K))))
}.

Definition indicator (b : bool) : R := if b then 1 else 0.

(** [m] of the first [n] clients are drawn uniformly, as far as one client and two are concerned. *)
Record draws_uniformly (l : law (nat -> bool)) (n m : nat) : Prop := {
  certain : expectation l (fun _ => 1) = 1;
  one : forall i, (i < n)%nat -> expectation l (fun who => indicator (who i)) = INR m / INR n;
  two : forall i j, (i < n)%nat -> (j < n)%nat -> i <> j ->
    expectation l (fun who => indicator (who i) * indicator (who j))
    = INR m * (INR m - 1) / (INR n * (INR n - 1));
  never : forall p i, In p l -> (n <= i)%nat -> snd p i = false
}.

(** ** Clients in groups, whose updates have random weights *)

(** Client [i] is one of group [c], of groups that have so many clients. *)
Definition member (sizes : list nat) (c i : nat) : Prop := (i < nth c sizes 0%nat)%nat.

(** The sum over all clients, each with its group's share. *)
Definition weighed (sizes : list nat) (shares : list R) (f : nat -> nat -> R) : R :=
  sum (length sizes) (fun c => nth c shares 0 * sum (nth c sizes 0%nat) (f c)).
Definition weighed_gradient {V : space} (sizes : list nat) (shares : list R)
    (G : nat -> nat -> V -> V) (x : V) : V :=
  total (length sizes) (fun c =>
    scale (nth c shares 0) (total (nth c sizes 0%nat) (fun i => G c i x))).

(** The server adds [server_lr] times the sum of all clients' changes, each with its weight: that of
    one who is not there is zero. *)
Definition averaging_round {V : space} (sizes : list nat) (K : nat) (client_lr server_lr : R)
    (G : nat -> nat -> V -> V) (weight : nat -> nat -> R) (x : V) : V :=
  add x (scale server_lr (total (length sizes) (fun c => total (nth c sizes 0%nat) (fun i =>
    scale (weight c i) (minus (local_sgd client_lr (fun _ => G c i) K x) x))))).

(** Weights whose means are [mean], whose mean squares are [second], group by group, and whose
    products with those of another client, of any group, have the means [product]. *)
Record random_weights (l : law (nat -> nat -> R)) (sizes : list nat) (mean second : list R)
    (product : list (list R)) : Prop := {
  of_law : expectation l (fun _ => 1) = 1;
  of_mean : forall c i, member sizes c i -> expectation l (fun w => w c i) = nth c mean 0;
  of_second : forall c i, member sizes c i ->
    expectation l (fun w => w c i * w c i) = nth c second 0;
  of_product : forall c i e j, member sizes c i -> member sizes e j -> (c, i) <> (e, j) ->
    expectation l (fun w => w c i * w e j) = nth e (nth c product nil) 0
}.

(** ** Methods with memory *)

(** Each of [n] clients is there with probability [p], any two with probability [p2]. *)
Record there_with (l : law (nat -> bool)) (n : nat) (p p2 : R) : Prop := {
  there_certain : probabilities l;
  there_one : forall i, (i < n)%nat -> expectation l (fun who => indicator (who i)) = p;
  there_two : forall i j, (i < n)%nat -> (j < n)%nat -> i <> j ->
    expectation l (fun who => indicator (who i) * indicator (who j)) = p2
}.

(** A model, and for each client the point whose gradient is remembered. Those who are there send
    what their gradient differs in from it, and it is remembered from then on. *)
Definition memory_round {V : space} (n : nat) (step surprise : R) (G : nat -> V -> V)
    (who : nat -> bool) (state : V * (nat -> V)) : V * (nat -> V) :=
  let (x, memory) := state in
  (minus x (scale step (add (mean n (fun i => G i (memory i)))
     (scale surprise (total n (fun i =>
        if who i then minus (G i x) (G i (memory i)) else zero))))),
   fun i => if who i then x else memory i).

(** ** Clients that come and go in bursts *)

(** Who is there next, after those who were: each of them stays with probability
    [lambda + (1 - lambda) pi], each other one comes with probability [(1 - lambda) pi],
    independently. *)
Fixpoint on_off (pi lambda : R) (there : list bool) : law (list bool) :=
  match there with
  | nil => (1, nil) :: nil
  | b :: others => let p := lambda * indicator b + (1 - lambda) * pi in
      flat_map (fun o => (p * fst o, true :: snd o) :: ((1 - p) * fst o, false :: snd o) :: nil)
        (on_off pi lambda others)
  end.

(** Who was there last, and the model or another state after [r] rounds from [x]: at first each of [n]
    clients is there with probability [pi], independently. In a round those who are there now make it. *)
Fixpoint in_bursts {A : Type} (n : nat) (pi lambda : R) (round : list bool -> A -> A) (x : A)
    (r : nat) : law (list bool * A) :=
  match r with
  | O => map (fun o => (fst o, (snd o, x))) (on_off pi 0 (repeat false n))
  | S r => flat_map (fun p => map (fun o => (fst p * fst o, (snd o, round (snd o) (snd (snd p)))))
      (on_off pi lambda (fst (snd p)))) (in_bursts n pi lambda round x r)
  end.

(** The model, and the sum of those before it. *)
Definition summing {V : space} (round : list bool -> V -> V) (there : list bool) (state : V * V) : V * V :=
  (round there (fst state), add (snd state) (fst state)).

Definition is_there (there : list bool) (i : nat) : bool := nth i there false.
Definition present (there : list bool) : nat := count_occ Bool.bool_dec there true.
