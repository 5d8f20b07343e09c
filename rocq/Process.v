(** What a refutation speaks of: quadratic clients, noise, draws and rounds of a finite setting.
    Nothing here is about proofs; rounds are those of Round.v. *)

From Coq Require Import Reals QArith Qreals List.
From fltheory Require Import Space Round Quadratic.
Import ListNotations.
Open Scope R_scope.

(** ** Random quantities of finitely many outcomes *)

Definition sure {A} (a : A) : law A := [(1, a)].

(** An outcome of [l], then one of the law that depends on it. *)
Definition bind {A B} (l : law A) (next : A -> law B) : law B :=
  flat_map (fun p => map (fun o => (fst p * fst o, snd o)) (next (snd p))) l.

(** The first law with probability [q], else the second. *)
Definition mixture {A} (q : R) (first second : law A) : law A :=
  map (fun o => (q * fst o, snd o)) first ++ map (fun o => ((1 - q) * fst o, snd o)) second.

(** [n] independent outcomes of one law, numbered from 0; what has other numbers is [rest]. *)
Fixpoint independent_copies {A} (n : nat) (l : law A) (rest : A) : law (nat -> A) :=
  match n with
  | O => sure (fun _ => rest)
  | S k => bind (independent_copies k l rest) (fun f =>
      bind l (fun o => sure (fun i => if Nat.eqb i k then o else f i)))
  end.

(** All sets of [m] elements of a list, and one of them, each with the same probability. *)
Fixpoint subsets (m : nat) (pool : list nat) : list (list nat) :=
  match m, pool with
  | O, _ => [[]]
  | S _, [] => []
  | S k, a :: rest => map (cons a) (subsets k rest) ++ subsets m rest
  end.
Definition member (set : list nat) (i : nat) : bool := existsb (Nat.eqb i) set.
Definition uniform (m : nat) (pool : list nat) : law (nat -> bool) :=
  map (fun set => (/ INR (length (subsets m pool)), member set)) (subsets m pool).

(** A vector of length [level] along one of the [d] axes, in either direction, all equally likely:
    noise of mean zero and mean square [level] squared. *)
Definition axis {d} (k : nat) (a : R) : real_vectors d := fun j => if Nat.eqb j k then a else 0.
Definition axis_noise (d : nat) (level : R) : law (real_vectors d) :=
  flat_map (fun k => [(/ (2 * INR d), axis k level); (/ (2 * INR d), axis k (- level))]) (seq 0 d).

(** ** Losses *)

Definition smooth {V : space} (L : R) (F : V -> R) (G : V -> V) : Prop := forall x y,
  square (minus (G x) (G y)) <= L * L * square (minus x y)
  /\ Rabs (F x - F y - inner (G y) (minus x y)) <= L / 2 * square (minus x y).

Definition strongly_convex {V : space} (mu : R) (F : V -> R) (G : V -> V) : Prop := forall x y,
  F y + inner (G y) (minus x y) + mu / 2 * square (minus x y) <= F x.

(** ** A setting *)

(** Client i's loss is [sum_k h_ik (x_k - c_ik)^2 / 2]; tables have a row for each client. *)
Record setting := {
  dimension : nat;
  clients : nat;
  hessians : list (list Q);
  optima : list (list Q);
  sigma : Q;  (* of a client's stochastic gradient *)
  server_sigma : Q;
  eligible : list nat;
  participants : nat;
  coin : Q;  (* the probability of a client round; else the server takes a step *)
  local_steps : nat;
  client_lr : Q;
  server_lr : Q;  (* what the clients' mean change is multiplied by *)
  assist_lr : Q;  (* the server's own step *)
  start : list Q
}.

Section Setting.
Variable s : setting.

Definition vectors : space := real_vectors (dimension s).
Definition point (p : list Q) : vectors := fun k => Q2R (nth k p 0%Q).
Definition curvature (i k : nat) : R := Q2R (nth k (nth i (hessians s) []) 0%Q).
Definition centre (i k : nat) : R := Q2R (nth k (nth i (optima s) []) 0%Q).

Definition loss (i : nat) (x : vectors) : R :=
  sum (dimension s) (fun k => curvature i k * ((x k - centre i k) * (x k - centre i k)) / 2).
Definition gradient (i : nat) (x : vectors) : vectors := fun k =>
  curvature i k * (x k - centre i k).

(** What all clients have as a mean, and its gradient. *)
Definition mean_loss (x : vectors) : R := average (clients s) (fun i => loss i x).
Definition full_gradient (x : vectors) : vectors := mean_gradient (clients s) gradient x.

(** ** Rounds *)

Definition draws : law (nat -> bool) := uniform (participants s) (eligible s).
(** Noise of client i at local step k. *)
Definition errors : law (nat -> nat -> vectors) :=
  independent_copies (clients s)
    (independent_copies (local_steps s) (axis_noise _ (Q2R (sigma s))) zero) (fun _ => zero).
Definition server_noise : law vectors := axis_noise _ (Q2R (server_sigma s)).

Definition one_round (x : vectors) : law vectors :=
  mixture (Q2R (coin s))
    (bind draws (fun who => bind errors (fun xi =>
      sure (clients_round (clients s) (participants s) (local_steps s) (Q2R (client_lr s))
        (Q2R (server_lr s)) (noisy_gradients gradient xi) who x))))
    (bind server_noise (fun noise =>
      sure (server_round (clients s) (Q2R (assist_lr s)) gradient noise x))).

(** The model after [r] rounds. *)
Fixpoint iterates (r : nat) : law vectors :=
  match r with O => sure (point (start s)) | S k => bind (iterates k) one_round end.

(** ** Quantities of a model [x]; [xs] is the optimum. *)

Definition squared_distance (xs : list Q) (x : vectors) : R := square (minus x (point xs)).
Definition squared_gradient (x : vectors) : R := square (full_gradient x).
Definition excess_loss (xs : list Q) (x : vectors) : R := mean_loss x - mean_loss (point xs).
(** The participants' mean of their losses, above those at the optimum. *)
Definition participant_excess_loss (xs : list Q) (x : vectors) : R :=
  expectation draws (fun who => / INR (participants s) * sum (clients s) (fun i =>
    if who i then loss i x - loss i (point xs) else 0)).
(** The square of the participants' mean of all gradients at their local models. *)
Definition participant_gradient_sum (x : vectors) : R :=
  expectation draws (fun who => expectation errors (fun xi => square (V := vectors)
    (scale (/ INR (participants s)) (total (clients s) (fun i => if who i
      then total (local_steps s) (fun k => gradient i
        (local_sgd (Q2R (client_lr s)) (noisy_gradients gradient xi i) k x)) else zero))))).

(** What is expected of a quantity after [r] rounds. *)
Definition after (r : nat) (quantity : vectors -> R) : R := expectation (iterates r) quantity.

End Setting.

(** The largest of [f 0], ..., [f n]. *)
Fixpoint largest (n : nat) (f : nat -> R) : R :=
  match n with O => f O | S k => Rmax (largest k f) (f n) end.
