def main(args):
    if args.cuda:
        print(args.no_cuda)
