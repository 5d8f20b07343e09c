(** A checker of certificates for one round, and the proof that what it accepts is true.

A certificate gives multipliers of the inequalities that losses fulfil, of budgets of heterogeneity,
and sums of squares. The slack of the claim is then a form in the means over clients, and one in
what clients differ in from them; the checker works both out from the round as it is played. *)

From Coq Require Import Reals QArith Qreals List Lra Lia Arith Bool.
From fltheory Require Import Space Forms Round.
Import ListNotations.
Open Scope R_scope.

(** ** What is claimed *)

Record claim := Claim {
  participants : nat;
  local_steps : nat;
  most_eligible : option Q;  (* None: any number *)
  excluded_share : Q;
  q : Q;
  client_lr : Q;
  server_lr : Q;
  assist_lr : Q;
  smoothness : Q;
  convexity : Q;
  everywhere : bool;  (* how heterogeneity is bounded *)
  noisy : bool;  (* whether clients' gradients have noise *)
  descent : bool;  (* whether it is F that a round makes smaller, and not the distance *)
  rate : Q;
  gap : Q;
  decrease : Q;
  heterogeneity : Q;
  noise : Q;
  server_noise : Q
}.

(** Pairs of points with a multiplier: of (a, b) that of the inequality from b to a. *)
Definition pairs := list (nat * nat * Q).

Record certificate := Certificate {
  eligible_pairs : pairs;
  excluded_pairs : pairs;
  budgets : list Q;  (* at x* and at x, of the eligible and of the excluded; or one at x* of all *)
  noises : list Q;  (* of the mean squares of a client's noise, but for the last step's *)
  orthogonal : pairs;  (* of (k, j) the product, which is zero, of step k's noise and what was before *)
  mean_squares : squares;
  eligible_squares : squares;
  excluded_squares : squares;
  fluctuation_squares : squares
}.

(** ** Forms in one client's coordinates: x - x*, the gradient of F, its own gradients at its points,
    and the noise that it sees there *)

Definition point (c : claim) (k a : nat) : linear :=
  let steps := repeat (- client_lr c)%Q a in
  if (a <? k)%nat
  then (1%Q :: 0%Q :: steps) ++ if noisy c then zeros (S k - a) ++ steps else []
  else [].

Definition gradient (a : nat) : linear := unit (2 + a).

(** The inequality from b to a, of a gradient at b, and of what points and gradients differ in. *)
Definition condition_of (L mu : Q) (at_b apart steeper : linear) : quadratic :=
  let ratio := (mu / L)%Q in
  qadd (both at_b apart)
    (qscale (Qred (1 / (2 * (1 - ratio))))
       (qadd (qscale (Qred (1 / L)) (product steeper steeper))
          (qadd (qscale mu (product apart apart))
             (qscale (Qred (-2 * ratio)) (both steeper apart))))).

Definition condition (c : claim) (k a b : nat) : quadratic :=
  condition_of (smoothness c) (convexity c) (gradient b) (lminus (point c k a) (point c k b))
    (lminus (gradient a) (gradient b)).

Definition conditions (c : claim) (k : nat) (l : pairs) : quadratic :=
  qsum (map (fun p => qscale (snd p) (condition c k (fst (fst p)) (snd (fst p)))) l).

(** How often function values remain. *)
Definition remaining (l : pairs) : linear :=
  fold_right ladd []
    (map (fun p => lscale (snd p) (lminus (unit (snd (fst p))) (unit (fst (fst p))))) l).

(** The points from 0 to [top] are compared, and [v] times the loss at the first one, less that at
    the optimum, remains. *)
Definition pairs_fit (v : Q) (top k : nat) (l : pairs) : bool :=
  forallb (fun p => Qle_bool 0 (snd p) && (fst (fst p) <=? top)%nat && (snd (fst p) <=? top)%nat) l
  && is_zero (lminus (remaining l) (lscale v (lminus (unit 0) (unit k)))).

(** A descent says nothing of the optimum, the last point. *)
Definition top (c : claim) (k : nat) : nat := if descent c then (k - 1)%nat else k.

(** A group's inequalities and budgets, at x* and at x. *)
Definition group (c : claim) (k : nat) (l : pairs) (at_optimum at_x : Q) : quadratic :=
  let off := lminus (gradient 0) (unit 1) in
  qadd (conditions c k l)
    (qadd (qscale at_optimum (product (gradient k) (gradient k)))
       (qscale at_x (product off off))).

(** ** Forms in the means: x - x*, the eligible clients' gradients, the excluded ones' at x and x* *)

Definition excludes (c : claim) : bool := negb (Qeq_bool (excluded_share c) 0).

Definition mean_slope (c : claim) : linear :=
  ladd (lscale (Qred (1 - excluded_share c)) (unit 1))
    (lscale (excluded_share c) (unit (1 + local_steps c))).

Definition eligible_means (c : claim) : list linear :=
  let a := excluded_share c in
  unit 0 :: mean_slope c ::
    map (fun k => unit (1 + k)) (seq 0 (local_steps c)) ++
    [lscale (Qred (- a / (1 - a))) (unit (2 + local_steps c))].

Definition excluded_means (c : claim) : list linear :=
  [unit 0; mean_slope c; unit (1 + local_steps c); unit (2 + local_steps c)].

Definition ones (k : nat) : linear := repeat 1%Q k.

(** x - x*; for a descent what F's gradient is over L, as if x* were x less that. *)
Definition start (c : claim) : linear :=
  if descent c then lscale (Qred (1 / smoothness c)) (mean_slope c) else unit 0.

Definition after_clients (c : claim) : linear :=
  ladd (start c) (lscale (Qred (- (server_lr c * client_lr c))) (0%Q :: ones (local_steps c))).

Definition after_server (c : claim) : linear :=
  ladd (start c) (lscale (- assist_lr c) (mean_slope c)).

Definition mean_block (c : claim) (eligible excluded : quadratic) : quadratic :=
  qadd (substituted eligible (eligible_means c))
    (qadd (if excludes c then substituted excluded (excluded_means c) else [])
       (qadd (qscale (rate c) (product (start c) (start c)))
          (qadd (qscale (- q c) (product (after_clients c) (after_clients c)))
             (qscale (Qred (-1 * (1 - q c))) (product (after_server c) (after_server c)))))).

(** ** Forms in what clients differ in *)

Definition differences (k : nat) : list linear := [] :: [] :: map unit (seq 0 (S k)).

(** The variance of the participants' mean, for clients whose mean square is one. *)
Definition spread (c : claim) : Q :=
  let m := inject_Z (Z.of_nat (participants c)) in
  match most_eligible c with
  | None => 1 / m
  | Some n => (n - m) / (m * (n - 1))
  end.

Definition eligible_block (c : claim) (eligible : quadratic) : quadratic :=
  let step := (server_lr c * client_lr c)%Q in
  qadd (substituted eligible (differences (local_steps c)))
    (qscale (Qred (- q c * step * step * spread c))
       (product (ones (local_steps c)) (ones (local_steps c)))).

(** ** Forms in what is random of one client: its gradients less their means, and the noise *)

(** Its gradients at x and x* are certain. *)
Definition random_forms (k : nat) : list linear :=
  [] :: [] :: [] :: map unit (seq 0 (k - 1)) ++ [[]] ++ map unit (seq (k - 1) (k - 1)).

(** What the last step's noise adds. *)
Definition last_noise (c : claim) : Q :=
  let step := (server_lr c * client_lr c)%Q in
  Qred (q c * step * step / inject_Z (Z.of_nat (participants c))).

Definition noise_block (c : claim) (eligible : quadratic) (parts : list Q) (l : pairs) : quadratic :=
  let k := (local_steps c - 1)%nat in
  qadd (substituted eligible (random_forms (local_steps c)))
    (qadd (qsum (map (fun p => qscale (fst p) (product (unit (k + snd p)) (unit (k + snd p))))
            (List.combine parts (seq 0 k))))
       (qadd (qsum (map (fun p => qscale (snd p)
            (both (unit (k + fst (fst p))) (unit (snd (fst p))))) l))
          (qscale (- last_noise c) (product (ones (k + k)) (ones (k + k)))))).

(** Step k's noise has no product with gradients up to this step, nor with earlier noise. *)
Definition orthogonal_fit (k : nat) (l : pairs) : bool :=
  forallb (fun p => let '(step, other, _) := p in
    (step <? k)%nat && ((other <? step)%nat || (k <=? other)%nat && (other <? k + step)%nat)) l.

Definition one_eligible (c : claim) : bool :=
  match most_eligible c with None => false | Some n => Qle_bool n 1 end.

Definition one_excluded (c : claim) : bool :=
  match most_eligible c with
  | None => false
  | Some n => Qle_bool (n * excluded_share c) (1 - excluded_share c)
  end.

(** ** The checker *)

Definition at_most (all : Q) (l : list Q) : bool :=
  forallb (fun b => Qle_bool 0 b) l && Qle_bool (fold_right Qplus 0%Q l) all.

Definition shares (c : claim) (w : certificate) : (Q * Q) * (Q * Q) :=
  let a := excluded_share c in
  match everywhere c, budgets w with
  | false, b :: _ => ((Qred (b * (1 - a)), 0), (Qred (b * a), 0))%Q
  | true, [b0; b1] => ((b0, b1), (0, 0))%Q
  | true, [b0; b1; b2; b3] => ((b0, b1), (b2, b3))
  | _, _ => ((0, 0), (0, 0))%Q
  end.

Definition in_range (c : claim) : bool :=
  (1 <=? participants c)%nat && (1 <=? local_steps c)%nat
  && Qle_bool 0 (excluded_share c) && negb (Qle_bool 1 (excluded_share c))
  && Qle_bool 0 (q c) && Qle_bool (q c) 1
  && negb (Qle_bool (smoothness c) 0) && negb (Qle_bool (smoothness c) (convexity c))
  && Qle_bool ((1 - q c) * (assist_lr c * assist_lr c)) (server_noise c).

Definition accepted (c : claim) (w : certificate) : bool :=
  let '((bo, bx), (co, cx)) := shares c w in
  let eligible := group c (local_steps c) (eligible_pairs w) bo bx in
  let excluded := group c 1 (excluded_pairs w) co cx in
  in_range c
  && pairs_fit (Qred (gap c * (1 - excluded_share c))) (top c (local_steps c)) (local_steps c)
       (eligible_pairs w)
  && pairs_fit (gap c * excluded_share c) (top c 1) 1 (excluded_pairs w)
  && at_most (heterogeneity c) (budgets w)
  && is_sum_of_squares (mean_block c eligible excluded) (mean_squares w)
  && (one_eligible c || is_sum_of_squares (eligible_block c eligible) (eligible_squares w))
  && (negb (excludes c) || one_excluded c
      || is_sum_of_squares (substituted excluded (differences 1)) (excluded_squares w))
  && (negb (noisy c)
      || (length (noises w) <=? local_steps c - 1)%nat
         && at_most (noise c - last_noise c) (noises w)
         && orthogonal_fit (local_steps c - 1) (orthogonal w)
         && is_sum_of_squares (noise_block c eligible (noises w) (orthogonal w))
              (fluctuation_squares w)).

(** Of a claim on the distance. *)
Definition proves (c : claim) (w : certificate) : bool := negb (descent c) && accepted c w.
