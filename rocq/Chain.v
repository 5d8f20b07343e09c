(** CA-Fed (Rodio et al. 2023) with clients whose losses are quadratic in one number, exact
    gradients, and sets of participants that follow a Markov chain: nothing here is about proofs. *)

From Coq Require Import Reals QArith Qreals List Arith Lra.
From fltheory Require Import Space Round Process.
Import ListNotations.
Open Scope R_scope.

(** The numbers themselves as vectors. *)
Definition line : space.
Proof. refine (Space R 0 Rplus Rmult Rmult _ _ _ _ _); intros; try ring. apply Rle_0_sqr. Defined.

(** Client i's loss is [h_i (x - c_i)^2 / 2]. *)
Record chain_setting := {
  curvatures : list Q;
  minimisers : list Q;
  weights : list Q;  (* what the server multiplies clients' changes by *)
  local_work : nat;  (* local steps *)
  server_step : Q;
  step_scale : Q;
  step_offset : Q;
  ball_centre : Q;
  ball_radius : Q;
  origin : Q;  (* the initial model *)
  transition : list (list Q);  (* row by row: what may follow a state *)
  present : list (list nat);  (* who takes part in each state *)
  stationary : list Q
}.

Section Setting.
Variable s : chain_setting.

Definition n_clients : nat := length (minimisers s).
Definition n_states : nat := length (stationary s).
Definition bend (i : nat) : R := Q2R (nth i (curvatures s) 0%Q).
Definition best (i : nat) : R := Q2R (nth i (minimisers s) 0%Q).
Definition weight (i : nat) : R := Q2R (nth i (weights s) 0%Q).
Definition share (a : nat) : R := Q2R (nth a (stationary s) 0%Q).
Definition move (a b : nat) : R := Q2R (nth b (nth a (transition s) []) 0%Q).
Definition takes_part_in (a i : nat) : bool := member (nth a (present s) []) i.
Definition middle : R := Q2R (ball_centre s).
Definition radius : R := Q2R (ball_radius s).

(** ** Losses, and the objective that is minimised instead of their mean *)

Definition client_loss (i : nat) (x : line) : R := bend i / 2 * ((x - best i) * (x - best i)).
Definition client_gradient (i : nat) (x : line) : line := bend i * (x - best i).

Definition availability (i : nat) : R :=
  sum n_states (fun a => if takes_part_in a i then share a else 0).
Definition mean_weight : R := sum n_clients (fun i => availability i * weight i).
Definition mean_squared_weight : R := sum n_clients (fun i => availability i * weight i ^ 2).
Definition true_objective (x : R) : R := sum n_clients (fun i => 1 / INR n_clients * client_loss i
  x).
Definition biased_objective (x : R) : R :=
  sum n_clients (fun i => availability i * weight i / mean_weight * client_loss i x).

(** ** The run *)

(** Step sizes in round t, the first being 1, fall like t to the power -[decay]. *)
Definition decay : R := 1.
Definition step (t : nat) : R := Q2R (step_scale s) / Rpower (INR t + Q2R (step_offset s)) decay.

(** The nearest point of the ball W. *)
Definition within (x : R) : Prop := Rabs (x - middle) <= radius.
Definition nearest (x : R) : R :=
  if Rle_dec (Rabs (x - middle)) radius then x
  else middle + radius / Rabs (x - middle) * (x - middle).

(** Round t from the model [x], with the participants of state [a]. *)
Definition weighted_round (t a : nat) (x : R) : R := nearest (x
  + Q2R (server_step s) * sum n_clients (fun i => if takes_part_in a i then weight i
    * (local_sgd (V := line) (step t) (exact_gradients client_gradient i) (local_work s) x - x)
    else 0)).

(** After [t] rounds: the next round's state, the model, and the sum of models before each round,
    each times its round's step size. *)
Fixpoint run (t : nat) : law (nat * (R * R)) :=
  match t with
  | O => map (fun a => (share a, (a, (Q2R (origin s), 0)))) (seq 0 n_states)
  | S k => bind (run k) (fun z => let '(a, (x, total)) := z in
      map (fun b => (move a b, (b, (weighted_round (S k) a x, total + step (S k) * x))))
        (seq 0 n_states))
  end.

Definition step_sum (T : nat) : R := sum T (fun k => step (S k)).
(** The mean of a quantity at the weighted average of the models. *)
Definition at_average (T : nat) (quantity : R -> R) : R :=
  expectation (run T) (fun z => let '(_, (_, total)) := z in quantity (total / step_sum T)).

(** ** The chain *)

Definition is_stationary : Prop :=
  (forall a, (a < n_states)%nat -> 0 <= share a) /\ sum n_states share = 1
  /\ (forall a b, (a < n_states)%nat -> (b < n_states)%nat -> 0 <= move a b)
  /\ (forall a, (a < n_states)%nat -> sum n_states (move a) = 1)
  /\ (forall b, (b < n_states)%nat -> sum n_states (fun a => share a * move a b) = share b).

Definition entry (table : list (list R)) (a b : nat) : R := nth b (nth a table []) 0.
(** P = U D V where D is diagonal, U V = 1, and the first entry of D is 1. *)
Definition diagonalises (U : list (list R)) (D : list R) (V : list (list R)) : Prop :=
  hd 0 D = 1 /\ length D = n_states /\ (forall a b, (a < n_states)%nat -> (b < n_states)%nat ->
    sum n_states (fun k => entry U a k * (nth k D 0 * entry V k b)) = move a b
    /\ sum n_states (fun k => entry U a k * entry V k b) = if Nat.eqb a b then 1 else 0).
(** The largest of the other eigenvalues' absolute values. *)
Definition second_eigenvalue (D : list R) : R := fold_right (fun l m => Rmax (Rabs l) m) 0 (tl D).
Definition frobenius (table : list (list R)) : R :=
  sqrt (sum n_states (fun a => sum n_states (fun b => entry table a b ^ 2))).

(** The step size of round t - J, where J is a delay that is at most t. *)
Definition delayed_step (delay : nat -> nat) (t : nat) : R := step (t - Nat.min (delay t) t).

(** The farthest of some points from the middle of W. *)
Definition reach (points : list R) : R :=
  fold_right (fun p m => Rmax (Rabs (p - middle)) m) 0 points.

(** The values of a function of clients and of points in W. *)
Definition among_clients_in_W (f : nat -> R -> R) (v : R) : Prop :=
  exists i x, (i < n_clients)%nat /\ within x /\ v = f i x.

End Setting.

Definition least (P : nat -> Prop) (m : nat) : Prop := P m /\ forall k, P k -> (m <= k)%nat.

(** [f 1 + f 2 + ... = l]. *)
Definition sums_to (f : nat -> R) (l : R) : Prop := Un_cv (fun n => sum n (fun k => f (S k))) l.
